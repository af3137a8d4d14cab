"""All blind probes of a benchmark: what each guesses, how often it is right, which subsets that solves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.cards.sheet import words_of
from twinset.evaluation.blind_probes.classifier import check_installed, cross_validated, text_differences
from twinset.evaluation.blind_probes.pairs import Pairs
from twinset.generators.words_alone.guesses import CHANCE, LEAST_GROUPS, MARGIN, Guess, guess, same_bag
from twinset.generators.words_alone.probe import Probed, probed

MISSING = 2  # in place of a sign, where a pair lacks the number
Signs = NDArray[np.int8]
Sees = Literal["captions", "images", "both"]
CLASSIFIER = "a linear classifier, cross-validated by group"


@dataclass(frozen=True, slots=True)
class Probe:
    """One blind guess of every pair.

    sees: what it looks at. guesses: what it says, by the sign that is then right, such as ``{-1: "shorter"}``.
    signs: (n,), the sign of the first half's number less the second's; `MISSING` without one.
    """

    name: str
    sees: Sees
    guesses: Mapping[int, str]
    signs: Signs


@dataclass(frozen=True, slots=True)
class Found:
    """How often a probe is right on one row of the table, with the better of its guesses."""

    probe: Probe
    said: str
    guess: Guess
    solves: bool

    def as_json(self) -> dict[str, Any]:
        """Percent; ``right`` counts ties as wrong, ``expected`` counts half of them as right."""
        one = self.guess
        return {
            "sees": self.probe.sees,
            "guess": self.said,
            "n": one.n,
            "groups": one.groups,
            "right": 100 * one.right / one.n,
            "expected": 100 * one.expected,
            "ties": 100 * one.ties / one.n,
            "low": None if one.low is None else 100 * one.low,
            "high": None if one.high is None else 100 * one.high,
            "flagged": one.solved,
            "solves": self.solves,
        }


@dataclass(frozen=True)
class GivenAway:
    """What a benchmark gives away.

    name, title: of the benchmark. notes: what was not probed, and why.
    detectors: shares (0-1) by row and what is right (`evaluation.blind_probes.detectors.detector_outcomes`).
    words: by row, what words tell of captions whose pair is not shown (`generators.words_alone.probe`).
    """

    name: str
    title: str
    pairs: Pairs
    probes: Sequence[Probe]
    notes: Sequence[str] = ()
    detectors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    words: Mapping[str, Probed] = field(default_factory=dict)

    @cached_property
    def found(self) -> dict[str, list[Found]]:
        """By row, what each probe that has a number for some pair of it found."""
        return {
            row: [one for probe in self.probes if (one := self._found(probe, places)) is not None]
            for row, places in self.pairs.rows.items()
        }

    def _found(self, probe: Probe, places: NDArray[np.intp]) -> Found | None:
        places = places[probe.signs[places] != MISSING]
        if not len(places):
            return None
        signs, groups = probe.signs[places], self.pairs.groups[places]
        tried = [(said, guess(signs * np.int8(side), groups)) for side, said in probe.guesses.items()]
        said, best = max(tried, key=lambda one: one[1].expected)
        # Knowing one half of a pair of two images leaves open what belongs to what.
        enough = probe.sees == "both" or all(len(self.pairs.images[place]) < 2 for place in places.tolist())
        return Found(probe, said, best, best.solved and enough)

    @cached_property
    def same_bag(self) -> NDArray[np.bool_]:
        """(n,), whether both captions share one bag of words."""
        said = zip(*self.pairs.captions, strict=True)
        return np.array([same_bag(words_of(first), words_of(second)) for first, second in said])

    def solved(self) -> Iterator[tuple[str, Found]]:
        """Rows that a probe solves, with the best one."""
        for row, found in self.found.items():
            if solving := [one for one in found if one.solves]:
                yield row, max(solving, key=lambda one: one.guess.expected)

    def as_json(self) -> dict[str, Any]:
        """All as one object of JSON; shares in percent."""
        rows = {
            row: {
                "pairs": len(places),
                "groups": len(np.unique(self.pairs.groups[places])),
                "same_bag": 100 * float(self.same_bag[places].mean()),
                "probes": {one.probe.name: one.as_json() for one in self.found[row]},
                "unpaired_words": None if row not in self.words else self.words[row].auc,
                "detectors": {name: 100 * share for name, share in self.detectors.get(row, {}).items()},
            }
            for row, places in self.pairs.rows.items()
        }
        return {
            "benchmark": self.name,
            "title": self.title,
            "left_out": dict(self.pairs.left_out),
            "rule": {"chance": 100 * CHANCE, "margin": 100 * MARGIN, "interval": 95, "least_groups": LEAST_GROUPS},
            "notes": list(self.notes),
            "all": rows.pop("all"),
            "by": rows,
            "solved": [{"row": row, "probe": one.probe.name, "guess": one.said} for row, one in self.solved()],
        }


def length_probes(pairs: Pairs) -> list[Probe]:
    """Which caption has fewer characters, and fewer words."""
    said = list(zip(*pairs.captions, strict=True))
    characters = np.array([len(first) - len(second) for first, second in said])
    words = np.array([len(words_of(first)) - len(words_of(second)) for first, second in said])
    return [
        Probe("characters", "captions", {-1: "shorter", 1: "longer"}, signs_of(characters)),
        Probe("words", "captions", {-1: "fewer words", 1: "more words"}, signs_of(words)),
    ]


def caption_probes(pairs: Pairs, seed: int) -> tuple[list[Probe], list[str]]:
    """What lengths and a classifier tell from the captions alone; and what could not be asked."""
    classified, notes = classify("text classifier", "captions", pairs, text_differences(*pairs.captions), seed)
    return [*length_probes(pairs), classified], notes


def unpaired_words(pairs: Pairs, seed: int) -> dict[str, Probed]:
    """What words tell of second captions beside first captions of other pairs, for each row of the table."""
    check_installed()
    sides = {
        row: [[side[place] for place in places.tolist()] for side in pairs.captions]
        for row, places in pairs.rows.items()
    }
    return {row: probed(first, second, seed) for row, (first, second) in sides.items()}


def classify(name: str, sees: Sees, pairs: Pairs, differences: Any, seed: int) -> tuple[Probe, list[str]]:
    """A classifier of each subset, which sees no other subset; and the subsets that are too small for one.

    Args:
        name, sees: of the probe. pairs: of the benchmark.
        differences: (n, d), features of the first half less those of the second; rows of NaN without them.
        seed: of the folds.
    """
    signs, few = np.full(len(pairs), MISSING, np.int8), 0
    for places in pairs.subset_places():
        if isinstance(differences, np.ndarray):
            places = places[~np.isnan(differences[places]).any(axis=1)]
        if not len(places):
            continue
        margins = cross_validated(differences[places], pairs.groups[places], seed)
        if margins is None:
            few += 1
        else:
            signs[places] = signs_of(margins)
    notes = [f"{name}: {few} subset{'s' * (few > 1)} of a single group, which nothing can be cross-validated on"]
    return Probe(name, sees, {1: CLASSIFIER}, signs), notes if few else []


def signs_of(gaps: NDArray[Any]) -> Signs:
    """Signs of gaps; `MISSING` for NaN."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(gaps), MISSING, np.sign(gaps)).astype(np.int8)
