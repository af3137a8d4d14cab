"""EqBen's equivariance score (Figures 6 and 13): how unequally a model answers the same change in both directions.

EqSim v2 (Equation 6) asks s00 - s01 = s11 - s10 and s00 - s10 = s11 - s01. The score is what is missing from that,
0 at best. It is in units of the model's scores, so only models with one scale, such as fine-tuned ones, compare.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.evaluation.score_files.batch import Floats
from twinset.evaluation.score_files.opening import Labels, ScoreFile, open_scores
from twinset.manifests.errors import WrongUse

COLUMNS = ("s00", "s01", "s10", "s11")
DIRECTIONS = ("text", "image")


def equivariance(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> tuple[Floats, Floats]:
    """Equivariance scores of the change of text and of the change of image, in units of the scores; shape (n,) each."""
    return (s00 - s01) - (s11 - s10), (s00 - s10) - (s11 - s01)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of the equivariance score of some rows.

    edges: of the bins, symmetric about 0 and the same for all values of a column, shape (bins + 1,).
    counts: rows in each bin by direction, ``text`` and ``image``, shape (bins,) each.
    mean, deviation: of the signed score by direction; the tighter about 0, the better.
    """

    edges: Floats
    counts: dict[str, NDArray[np.int64]]
    mean: dict[str, float]
    deviation: dict[str, float]


def distributions(source: pa.Table | str | Path, by: Sequence[str] = (), bins: int = 80) -> dict[str, Distribution]:
    """Distributions of the equivariance score, by value of columns; under ``all`` without any.

    Reads the table twice, the first time for its range. Rows with one image have no such score. Raises `WrongUse`: the
    table has no ``s00 s01 s10 s11``, or no row has two images.
    """
    file = open_scores(source)
    widest = max((float(np.abs(scores).max()) for _, scores in _scored(file, None) if scores.size), default=None)
    if widest is None:
        raise WrongUse(f"{file.where}: no row has scores of two images; equivariance is about two")
    edges = np.linspace(-widest or -1.0, widest or 1.0, bins + 1)
    labels = Labels(by)
    # By label and direction: rows in each bin; how many rows, sum, sum of squares.
    counts: dict[int, NDArray[np.int64]] = {}
    moments: dict[int, Floats] = {}
    for numbers, scores in _scored(file, labels if by else None):
        for number in np.unique(numbers).tolist():
            chosen = scores[:, numbers == number]
            histograms = np.array([np.histogram(direction, edges)[0] for direction in chosen])
            powers = np.array([[len(direction), direction.sum(), np.square(direction).sum()] for direction in chosen])
            counts[number] = counts.get(number, 0) + histograms
            moments[number] = moments.get(number, 0) + powers
    names = labels.names if by else ["all"]
    found = {}
    for number in sorted(counts, key=names.__getitem__):
        n, sums, squares = moments[number].T
        mean, square = sums / n, squares / n
        deviation = np.sqrt(np.maximum(0, square - mean**2))
        found[names[number]] = Distribution(
            edges,
            dict(zip(DIRECTIONS, counts[number], strict=True)),
            dict(zip(DIRECTIONS, mean.tolist(), strict=True)),
            dict(zip(DIRECTIONS, deviation.tolist(), strict=True)),
        )
    return found


def _scored(file: ScoreFile, labels: Labels | None) -> Iterator[tuple[NDArray[np.uint16], Floats]]:
    """Labels, and scores of shape (2, n), of the rows with two images, batch by batch."""
    for batch in file.batches([*COLUMNS, *(labels.columns if labels else ())]):
        scores = np.stack(equivariance(*(batch.numbers(name, nullable=True) for name in COLUMNS)))
        two = ~np.isnan(scores[0])
        numbers = labels.numbered(batch) if labels else np.zeros(len(batch), np.uint16)
        yield numbers[two], scores[:, two]
