"""Blind probes: guesses of every pair, how often they are right in each row of the table, which subsets that solves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.cards.sheet import words_of
from twinset.evaluation.blind_probes.document import Guessed, ProbedRow, Probes
from twinset.evaluation.blind_probes.pairs import Pairs, Places
from twinset.evaluation.examples import Benchmark
from twinset.generators.words_alone.guesses import guess, same_bag
from twinset.generators.words_alone.probe import FOLDS, out_of_fold

MISSING = 2  # in place of a sign, where a pair lacks the number
CLASSIFIER = "a linear classifier, cross-validated by group"
REPEATS = 3  # of the cross-validation, in other folds: a single one moves the share by one or two points
BUCKETS, LONGEST = 1 << 18, 3  # that n-grams are hashed into; words of the longest
TOKEN = r"\w+|[^\w\s]"  # punctuation too: whether a caption ends with a full stop can give it away


@dataclass(frozen=True, slots=True)
class Probe:
    """One blind guess of every pair.

    guesses: what it says, by the sign that is then right, such as ``{-1: "shorter"}``.
    signs: (n,), the sign of the first half's number less the second's; `MISSING` without one. note: what it lacks.
    """

    name: str
    guesses: Mapping[int, str]
    signs: NDArray[np.int8]
    note: str = ""


def document_of(
    benchmark: Benchmark,
    pairs: Pairs,
    probes: Sequence[Probe],
    detected: Mapping[str, NDArray[np.float64]],
    notes: Sequence[str],
) -> Probes:
    """All that is reported of a benchmark.

    Args:
        detected: (n,), share (0-1) of each pair that detectors get right, by what; NaN where they were not asked.
        notes: what was not probed, beside the notes of probes.
    """
    captions = np.array(pairs.captions, dtype=object)
    bags = np.array([same_bag(words_of(first), words_of(second)) for first, second in captions.T])
    rows = {}
    for row, places in pairs.rows.items():
        guessed = {probe.name: _guessed(probe, pairs, places) for probe in probes}
        detectors = {name: shares[places] for name, shares in detected.items()}
        rows[row] = ProbedRow(
            pairs=len(places),
            groups=len(np.unique(pairs.groups[places])),
            same_bag=100 * float(bags[places].mean()),
            probes={name: figures for name, figures in guessed.items() if figures is not None},
            detectors={name: 100 * float(np.nanmean(s)) for name, s in detectors.items() if not np.isnan(s).all()},
        )
    return Probes(
        benchmark=benchmark.name,
        title=benchmark.title,
        left_out=dict(pairs.left_out),
        notes=[*(probe.note for probe in probes if probe.note), *notes],
        all=rows.pop("all"),
        by=rows,
    )


def _guessed(probe: Probe, pairs: Pairs, places: Places) -> Guessed | None:
    """The better guess of a probe on some pairs; None where no pair has the number."""
    places = places[probe.signs[places] != MISSING]
    if not len(places):
        return None
    signs, groups = probe.signs[places], pairs.groups[places]
    guesses = [(words, guess(signs * np.int8(side), groups)) for side, words in probe.guesses.items()]
    words, best = max(guesses, key=lambda named: named[1].expected)
    # Knowing one half of a pair of two images leaves open what belongs to what.
    enough = all(len(pairs.images[place]) < 2 for place in places.tolist())
    return Guessed(
        guess=words,
        n=best.n,
        groups=best.groups,
        right=100 * best.right / best.n,
        expected=100 * best.expected,
        ties=100 * best.ties / best.n,
        low=None if best.low is None else 100 * best.low,
        high=None if best.high is None else 100 * best.high,
        flagged=best.solved,
        solves=best.solved and enough,
    )


def caption_probes(pairs: Pairs, seed: int) -> list[Probe]:
    """Which caption has fewer characters, and fewer words; and a classifier of captions."""
    characters = np.array([[len(caption) for caption in side] for side in pairs.captions])
    words = np.array([[len(words_of(caption)) for caption in side] for side in pairs.captions])
    shorter, fewer = (np.sign(first - second).astype(np.int8) for first, second in (characters, words))
    return [
        Probe("characters", {-1: "shorter", 1: "longer"}, shorter),
        Probe("words", {-1: "fewer words", 1: "more words"}, fewer),
        text_classifier(pairs, seed),
    ]


def text_classifier(pairs: Pairs, seed: int) -> Probe:
    """A classifier of each subset, which sees no other subset; subsets of too few groups have none."""
    differences = text_differences(*pairs.captions)
    signs, few = np.full(len(pairs), MISSING, np.int8), 0
    for places in pairs.subsets.values():
        margins = cross_validated(differences[places], pairs.groups[places], seed)
        if margins is None:
            few += 1
        else:
            signs[places] = np.sign(margins)
    note = f"text classifier: {few} subset{'s' * (few > 1)} with too few groups to cross-validate" if few else ""
    return Probe("text classifier", {1: CLASSIFIER}, signs, note)


def text_differences(captions0: Sequence[str], captions1: Sequence[str]) -> Any:
    """Counts of n-grams of the first captions less those of the second, hashed, and the gaps of their lengths.

    n-grams are of 1 to 3 words or marks, in their own case.

    Returns:
        (n, BUCKETS + 2) csr_matrix of float64. The last two columns: gap in characters / 10, gap in words.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    hashed = HashingVectorizer(
        n_features=BUCKETS, ngram_range=(1, LONGEST), token_pattern=TOKEN, lowercase=False, norm=None
    )
    pairs = zip(captions0, captions1, strict=True)
    gaps = [[(len(first) - len(second)) / 10, len(first.split()) - len(second.split())] for first, second in pairs]
    return hstack([hashed.transform(captions0) - hashed.transform(captions1), np.array(gaps, np.float64)]).tocsr()


def cross_validated(differences: Any, groups: NDArray[Any], seed: int) -> NDArray[np.float64] | None:
    """For each pair, how much the first half looks like a first half to a classifier that has not seen its group.

    Logistic regression on differences of features. It learns from each pair in both orders, so that of a swapped pair
    it says the opposite, and the place of a half gives nothing away.

    Args:
        differences: (n, d) csr_matrix, features of the first half less those of the second.
        groups: (n,), pairs of one group are in one fold.
        seed: of the folds.

    Returns:
        (n,), above 0 where the guess is right, exactly 0 where it has nothing to go by. None with fewer groups than
        folds.
    """
    from scipy.sparse import vstack

    n = len(groups)
    if len(np.unique(groups)) < FOLDS:
        return None
    differences = differences[:, np.unique(differences.indices)]  # empty buckets would only take time
    if not differences.shape[1]:  # equal captions, in every pair
        return np.zeros(n)
    orders, labels = vstack([differences, -differences]).tocsr(), np.repeat([1, 0], n)
    repeats = [out_of_fold(orders, labels, np.tile(groups, 2), seed + repeat) for repeat in range(REPEATS)]
    scores: NDArray[np.float64] = np.mean(repeats, axis=0)
    return scores[:n] - scores[n:]
