"""The unpaired and the paired probe: how well words and pairs of words tell negative captions from true ones.

Unpaired: negatives of one half of the captions against source captions of the other half, of the same kind and with as
many words, both ways; else a model would learn that captions which can be changed so are longer than others. Paired:
both captions of a pair, whose difference decides. Either is asked out of fold, folds by source caption: a caption and
its negative in different folds would teach the opposite. A model trained on negatives that words tell learns the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.markdown import table
from twinset.generators.negative_captions.changes import words
from twinset.generators.negative_captions.kinds import KINDS

#: Fewer pairs tell nothing.
LEAST = 100
MOST = 1000
FOLDS = 5
MIN_CAPTIONS = 2  # that a word must be in to be known
Texts = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Probed:
    """What words tell of the negatives of a kind.

    pairs: that were asked. auc: area under the curve of the unpaired probe, .5 is chance. paired: share (0-1) of pairs
    whose negative the paired probe knows. Both None with fewer than `LEAST` pairs, or where too few captions have as
    many words as negatives of others.
    """

    pairs: int
    auc: float | None
    paired: float | None


def probed(captions: Sequence[str], negatives: Sequence[str], seed: int, most: int = MOST) -> Probed:
    """Ask both probes about negatives of one kind.

    Args:
        captions, negatives: of pairs; a caption can come several times.
        seed: of the rows that are asked, of halves and of folds.
        most: pairs that are asked.
    """
    random = np.random.default_rng(seed)
    rows = random.permutation(len(captions))[:most]
    one, other = (np.array(texts, dtype=object)[rows] for texts in (captions, negatives))
    groups = np.unique(one, return_inverse=True)[1]
    count = len(rows)
    if count < LEAST or groups.max() + 1 < 2 * FOLDS:
        return Probed(count, None, None)
    return Probed(count, _unpaired(one, other, groups, random), _paired(one, other, groups, random))


def _unpaired(captions: Texts, negatives: Texts, groups: NDArray[np.intp], random: np.random.Generator) -> float | None:
    half = random.permutation(groups.max() + 1)[groups] % 2
    texts, labels, sources = list[str](), list[int](), list[int]()
    for side in (0, 1):
        found, true = np.flatnonzero(half == side), np.flatnonzero(half != side)
        for row, matched in _of_one_length(negatives, captions, found, true, random):
            texts += [negatives[row], captions[matched]]
            labels += [1, 0]
            sources += [int(groups[row]), int(groups[matched])]
    if len(texts) < 2 * LEAST:
        return None
    label = np.array(labels)
    scores = out_of_fold(word_counts(texts), label, np.array(sources), random)
    return area_under_curve(scores[label == 1], scores[label == 0])


def _of_one_length(
    negatives: Texts, captions: Texts, found: NDArray[np.intp], true: NDArray[np.intp], random: np.random.Generator
) -> Iterable[tuple[int, int]]:
    """A caption with as many words for each negative, each once."""
    waiting: dict[int, list[int]] = {}
    for row in random.permutation(true).tolist():
        waiting.setdefault(len(words(captions[row])), []).append(row)
    for row in random.permutation(found).tolist():
        if rows := waiting.get(len(words(negatives[row]))):
            yield row, rows.pop()


def _paired(captions: Texts, negatives: Texts, groups: NDArray[np.intp], random: np.random.Generator) -> float:
    counts = word_counts([*captions, *negatives])
    # A pair and its reverse, so that the two classes are as large and nothing but the words differs.
    change = counts[len(captions) :] - counts[: len(captions)]
    from scipy.sparse import vstack

    label = np.repeat([1, 0], len(captions))
    scores = out_of_fold(vstack([change, -change]).tocsr(), label, np.tile(groups, 2), random)[: len(captions)]
    return float(np.mean(scores > 0) + np.mean(scores == 0) / 2)


def word_counts(texts: Sequence[str]):  # type: ignore[no-untyped-def]
    """Words and pairs of words that at least `MIN_CAPTIONS` texts have: (n, d), sparse."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(ngram_range=(1, 2), min_df=MIN_CAPTIONS).fit_transform(texts).astype(np.float64)
    except ValueError:  # no word is in two texts: then none tells anything
        from scipy.sparse import csr_matrix

        return csr_matrix((len(texts), 1))


def out_of_fold(  # type: ignore[no-untyped-def]
    features,
    labels: NDArray[np.int_],
    groups: NDArray[np.int_],
    random: np.random.Generator,
    weights: NDArray[np.float64] | None = None,
):
    """What a logistic regression that has not seen a row's group says of it: (n,), above 0 where it says 1.

    Args:
        features: (n, d), sparse. labels: (n,), 0 or 1. groups: (n,), rows of one stay in one fold.
        random: deals groups into folds. weights: of rows that the model is trained on, else 1 each.
    """
    from sklearn.linear_model import LogisticRegression

    fold = (random.permutation(int(groups.max()) + 1) % FOLDS)[groups]
    scores = np.zeros(len(labels))
    for number in range(FOLDS):
        test = fold == number
        train = ~test if weights is None else ~test & (weights > 0)
        if test.any() and len(np.unique(labels[train])) == 2:
            model = LogisticRegression(solver="liblinear", random_state=0)
            model.fit(features[train], labels[train], None if weights is None else weights[train])
            scores[test] = model.decision_function(features[test])
    return scores


def area_under_curve(ones: NDArray[np.float64], zeros: NDArray[np.float64]) -> float:
    """P(a score of ``ones`` is above one of ``zeros``), ties half."""
    ordered = np.sort(zeros)
    below, up_to = (np.searchsorted(ordered, ones, side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(zeros)))


ANY = "all pairs"  # where pairs have no kind


class Sampled:
    """Pairs of captions by kind, at most `MOST` of each, however many are added."""

    def __init__(self, seed: int = 0) -> None:
        """seed: of the draw and of the probes."""
        self._seed, self._random = seed, np.random.default_rng(seed)
        self._ranks: dict[str, NDArray[np.float64]] = {}
        self._pairs: dict[str, list[tuple[str, str]]] = {}

    def add(self, captions: pa.Array, negatives: pa.Array, kinds: pa.Array | None = None) -> None:
        """Draw from a batch: the pairs of smallest random numbers stay. kinds: of each pair, where there are any."""
        named = np.array([ANY] * len(captions) if kinds is None else kinds.to_pylist(), dtype=object)
        ranks = self._random.random(len(captions))
        for kind in dict.fromkeys(named.tolist()):
            rows = np.flatnonzero(named == kind)
            rows = rows[np.argsort(ranks[rows])[:MOST]]
            pairs = [(captions[row].as_py(), negatives[row].as_py()) for row in rows.tolist()]
            every = np.concatenate((self._ranks.get(kind, np.empty(0)), ranks[rows]))
            both = [*self._pairs.get(kind, ()), *pairs]
            order = np.argsort(every)[:MOST]
            self._ranks[kind], self._pairs[kind] = every[order], [both[place] for place in order.tolist()]

    def probed(self) -> dict[str, Probed]:
        """Both probes of each kind, in the order of the papers' tables, others after them."""
        ordered = [*(kind for kind in KINDS if kind in self._pairs), *sorted(self._pairs.keys() - KINDS.keys())]
        sides = {kind: [[pair[side] for pair in self._pairs[kind]] for side in (0, 1)] for kind in ordered}
        return {kind: probed(captions, negatives, self._seed) for kind, (captions, negatives) in sides.items()}


def words_table(found: Mapping[str, Probed]) -> str:
    """A Markdown table of what words alone tell of each kind."""
    rows = [
        (kind.replace("_", " "), f"{one.pairs:,}", said(one.auc), as_percent(one.paired)) for kind, one in found.items()
    ]
    return table(("kind", "pairs asked", "one caption: area under the curve", "both captions: right"), rows)


def said(auc: float | None) -> str:
    """An area under the curve, or that there are too few pairs for one."""
    return "too few" if auc is None else f"{auc:.2f}"


def as_percent(paired: float | None) -> str:
    """The share that the paired probe knows, or that there are too few pairs for one."""
    return "too few" if paired is None else f"{paired:.0%}"
