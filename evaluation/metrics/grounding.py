"""Grounding of boundaries in videos (EqBen A.6, Table 12): how often the predicted one is near enough, and the mean.

The prediction is the gap between frames whose score s(I1, T1) + s(I2, T2) is highest. Where several gaps score the
same, all of them have to be near enough for a strict hit.
"""

import numpy as np

from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, truth_of
from twinset.evaluation.score_files.batch import Batch

THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds
_NAMES = tuple(f"grounding@{seconds}" for seconds in THRESHOLDS)
_BITS = truth_of(len(THRESHOLDS) + 1)
_EVENTS = {
    "rows": _BITS[:, 0] | True,
    **{name: _BITS[:, bit] for bit, name in enumerate(_NAMES)},
    "tie": _BITS[:, len(THRESHOLDS)],
}


class Groundings(ScoreKind):
    """Percent of boundaries found within each of `THRESHOLDS`, and ``grounding``, their average."""

    columns: tuple[str, ...] = ("errors",)
    events = tuple(_EVENTS)
    truth = np.stack([*_EVENTS.values()], axis=1).astype(np.uint8)

    def outcomes(self, batch: Batch) -> Outcomes:
        errors, begins = batch.lists("errors")
        gaps = np.diff([*begins, len(errors)])
        # In float32, as the table has them: an error of 0.1 s is within 0.1 s.
        within = errors.astype(np.float32)[:, None] <= np.asarray(THRESHOLDS, np.float32)
        hits = np.add.reduceat(within, begins, axis=0, dtype=np.int64)
        found = hits == gaps[:, None]
        tie = ((hits > 0) & ~found).any(1)
        code = code_of([*found.T, tie])
        expected = self.truth[code].astype(np.float64)
        # One of the best-scoring gaps at random: the share of them that is near enough.
        expected[:, 1:-1] = hits / gaps[:, None]
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ("grounding", *_NAMES)

    def main(self, sums: Floats) -> tuple[str, ...]:
        return _NAMES

    def share(self, name: str) -> tuple[str, str] | None:
        return None if name == "grounding" else (name, "rows")

    def figure(self, name: str, sums: Floats) -> Floats:
        if name == "grounding":
            return np.asarray(np.mean([self.figure(one, sums) for one in _NAMES], axis=0), np.float64)
        return super().figure(name, sums)

    def tied(self, sums: Floats) -> float | None:
        return float(sums[self.events.index("tie")])
