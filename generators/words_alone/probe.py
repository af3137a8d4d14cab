"""The unpaired and the paired probe: how well words and pairs of words tell negative captions from true ones.

Unpaired: negatives of one half of the captions against source captions of the other half, of the same kind and with as
many words, both ways; else a model would learn that captions which can be changed so are longer than others. Paired:
both captions of a pair, whose difference decides. Either is asked out of fold, folds by source caption: a caption and
its negative in different folds would teach the opposite. A model trained on negatives that words tell learns the words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.negative_captions.changes import words

#: Fewer pairs tell nothing.
LEAST = 100
MOST = 1000
FOLDS = 5
MIN_CAPTIONS = 2  # that a word must be in to be known


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
    rows = random.permutation(len(captions))[:most].tolist()
    captions, negatives = [captions[row] for row in rows], [negatives[row] for row in rows]
    groups = np.unique(np.array(captions, dtype=object), return_inverse=True)[1]
    if len(rows) < LEAST or groups.max() + 1 < 2 * FOLDS:
        return Probed(len(rows), None, None)
    fold_seed = int(random.integers(2**31))
    auc = _unpaired(captions, negatives, groups, random)
    return Probed(len(rows), auc, _paired(captions, negatives, groups, fold_seed))


def _unpaired(
    captions: Sequence[str], negatives: Sequence[str], groups: NDArray[np.intp], random: np.random.Generator
) -> float | None:
    from sklearn.metrics import roc_auc_score

    half = random.permutation(groups.max() + 1)[groups] % 2
    pairs = [pair for side in (0, 1) for pair in _of_one_length(captions, negatives, half == side, random)]
    if len(pairs) < LEAST:
        return None
    texts = [text for negative, true in pairs for text in (negatives[negative], captions[true])]
    sources = np.array([groups[row] for pair in pairs for row in pair])
    labels = np.tile([1, 0], len(pairs))
    scores = out_of_fold(word_counts(texts), labels, sources, int(random.integers(2**31)))
    return float(roc_auc_score(labels, scores))


def _of_one_length(
    captions: Sequence[str], negatives: Sequence[str], asked: NDArray[np.bool_], random: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """A caption of the other half with as many words for each negative that is asked about, each once."""
    waiting = defaultdict[int, list[int]](list)
    for row in random.permutation(np.flatnonzero(~asked)).tolist():
        waiting[len(words(captions[row]))].append(row)
    for row in random.permutation(np.flatnonzero(asked)).tolist():
        if rows := waiting[len(words(negatives[row]))]:
            yield row, rows.pop()


def _paired(captions: Sequence[str], negatives: Sequence[str], groups: NDArray[np.intp], seed: int) -> float:
    from scipy.sparse import vstack

    counts = word_counts([*captions, *negatives])
    # A pair and its reverse, so that the two classes are as large and nothing but the words differs.
    change = counts[len(captions) :] - counts[: len(captions)]
    labels = np.repeat([1, 0], len(captions))
    scores = out_of_fold(vstack([change, -change]).tocsr(), labels, np.tile(groups, 2), seed)[: len(captions)]
    return float(np.mean(scores > 0) + np.mean(scores == 0) / 2)


def word_counts(texts: Sequence[str]) -> Any:
    """Words and pairs of words that at least `MIN_CAPTIONS` texts have: (n, d), sparse."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(ngram_range=(1, 2), min_df=MIN_CAPTIONS).fit_transform(texts).astype(np.float64)
    except ValueError:  # no word is in two texts: then none tells anything
        return csr_matrix((len(texts), 1))


def out_of_fold(features: Any, labels: NDArray[np.int64], groups: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """What a logistic regression that has not seen a row's group says of it: (n,), above 0 where it says 1.

    Args:
        features: (n, d), sparse. labels: (n,), 0 or 1. groups: (n,), rows of one stay in one fold.
        seed: deals groups into folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    model = LogisticRegression(solver="liblinear", random_state=0)
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    scores: NDArray[np.float64] = cross_val_predict(
        model, features, labels, groups=groups, cv=folds, method="decision_function"
    )
    return scores
