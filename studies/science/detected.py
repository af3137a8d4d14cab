"""What detectors tell of the test sets: which half of a pair something is, from a caption or an image alone.

BiVLC, section 5 and appendix E. What is told apart here is not natural and synthetic, but the two halves of twins: the
scene that was sampled, and the same scene after its change.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.science.bootstrap import differences, interval, resampled_differences
from twinset.evaluation.blind_probes.detectors import Detectors, detector_outcomes
from twinset.evaluation.blind_probes.pairs import ALL, read_pairs
from twinset.evaluation.blind_probes.run import Encode
from twinset.evaluation.examples import Benchmark
from twinset.shards.storage.whole_file import write_text

#: Percent of two detectors that toss a coin for every caption and image. For I2T both images must be told right, and
#: then the captions: 1/2 · 1/2 · 1/2. For group all four halves.
CHANCE = {"text": 50.0, "image": 50.0, "i2t": 12.5, "t2i": 12.5, "group": 6.25}
HALVES = ("text", "image")
#: What the figures are of, and what high ones would mean; paragraphs of the report.
MEANING = (
    "Nothing is natural or synthetic here. The first half is a scene as it was sampled. The second, which stands for "
    "the negative, is the same scene after its change. Both are painted and phrased by the same rules, so that a "
    "detector can learn only what a change makes more frequent ([decisions](decisions.md)).",
    "Text, image: percent of single captions, of single images. For I2T the image detector says which half an image "
    "is, and the text detector chooses the caption; T2I is the other way round; group needs both. Chance: a coin for "
    "each caption and image. Detectors that say the same of both halves, since twins are alike, stay below it.",
    "**What a high figure would mean.** High text or high image: a model can prefer one half of a pair by a habit of "
    "the test set. That is not a group score yet, since one half is then chosen for both partners. High I2T, T2I or "
    "group: as much of an arm's score could be had without matching any image with any caption.",
)
_RESAMPLES = 2000
#: What is right of each pair, and of how many, by figure.
Counts = Mapping[str, tuple[NDArray[np.int64], int]]


@dataclass(frozen=True, slots=True)
class Told:
    """A figure in percent with its 95 % interval over groups of pairs."""

    percent: float
    low: float
    high: float

    @property
    def shown(self) -> str:
        """As a table has it."""
        return f"{self.percent:.1f} ({self.low:.1f} to {self.high:.1f})"


@dataclass(frozen=True, slots=True)
class Detected:
    """What the detectors tell of one test set.

    pairs: those whose images can be read. figures: by the names of `CHANCE`; captions alone have only ``text``.
    kinds: the same of each kind of change, by its name.
    """

    pairs: int
    figures: Mapping[str, Told]
    kinds: Mapping[str, Mapping[str, Told]]

    def cells(self, kind: str | None = None) -> list[str]:
        """The figures, of all pairs or of a kind, as cells of a table in the order of `CHANCE`."""
        there = (self.figures if kind is None else self.kinds[kind]).get
        return ["" if (one := there(name)) is None else one.shown for name in CHANCE]

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        write_text(path, json.dumps(asdict(self), indent=1) + "\n")


def read_detected(path: Path) -> Detected:
    """What `Detected.write` wrote."""
    said = json.loads(path.read_text("utf-8"))
    kinds = {kind: _told(figures) for kind, figures in said["kinds"].items()}
    return Detected(said["pairs"], _told(said["figures"]), kinds)


def _told(figures: Mapping[str, Mapping[str, float]]) -> dict[str, Told]:
    return {name: Told(**one) for name, one in figures.items()}


def detect(benchmark: Benchmark, detectors: Detectors, encode: Encode) -> Detected:
    """Let detectors classify every caption and every image of a test set.

    Args:
        encode: gives the features that the detectors were trained on.

    Raises:
        WrongUse: the test set has no pairs of captions.
    """
    pairs = read_pairs(benchmark)
    texts, images = encode(pairs)
    usable = np.ones(len(pairs), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    chances = [detectors.text(texts[usable])]
    if images is not None and detectors.image is not None and usable.any():
        chances.append(detectors.image(images[usable]))
    counts, groups = _counts(chances), pairs.groups[usable]
    kept = np.flatnonzero(usable)
    rows = {name.rpartition(" / ")[2]: np.isin(kept, places) for name, places in pairs.rows.items()}
    figures = {name: _figures(counts, groups, here) for name, here in rows.items() if here.any()}
    return Detected(len(kept), figures.pop(ALL, {}), figures)


def _counts(chances: Sequence[NDArray[np.float64]]) -> Counts:
    """Args: probabilities (n, 2) of being the second half, of captions and, where there are some, of images."""
    found = {
        half: (((of_half > 0.5) == np.array([False, True])).sum(1), 2)
        for half, of_half in zip(HALVES, chances, strict=False)
    }
    if len(chances) == len(HALVES):
        outcomes = detector_outcomes(chances[0], chances[1])
        found |= {name: (outcomes[name].astype(np.int64), 1) for name in CHANCE if name in outcomes}
    return found


def _figures(counts: Counts, groups: NDArray[np.int32], here: NDArray[np.bool_]) -> dict[str, Told]:
    _, places, sizes = np.unique(groups[here], return_inverse=True, return_counts=True)
    of_groups = np.stack([np.bincount(places, right[here]) for right, _ in counts.values()]).astype(np.int64)
    each = np.array([one for _, one in counts.values()])
    percents = differences(of_groups[:, None], sizes) / each
    resampled = resampled_differences(of_groups[:, None], sizes, _RESAMPLES, 0) / each
    return {
        name: Told(float(percent), *interval(values))
        for name, percent, values in zip(counts, percents, resampled.T, strict=True)
    }
