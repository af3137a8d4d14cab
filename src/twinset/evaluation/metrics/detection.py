"""Figures of detectors of natural and synthetic captions and images, on pairs of a natural and a synthetic half."""

import numpy as np

from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, ratio, truth_of
from twinset.evaluation.score_files.batch import Batch

#: Columns: whether each half is told right, natural first.
TOLD = ("natural_text", "synthetic_text", "natural_image", "synthetic_image")


class Detection(ScoreKind):
    """Percent of captions, and of images, that are told right (BiVLC, Table 4); both halves of a pair count."""

    columns = TOLD
    events = ("rows", *TOLD)
    truth = np.insert(truth_of(len(TOLD)), 0, True, axis=1).astype(np.uint8)

    def outcomes(self, batch: Batch) -> Outcomes:
        """As `ScoreKind.outcomes`."""
        return Outcomes(code_of([batch.flags(name) for name in TOLD]), None, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return "text_detection", "image_detection"

    def share(self, name: str) -> None:
        return None

    def figure(self, name: str, sums: Floats) -> Floats:
        first = 1 if name == "text_detection" else 3
        return ratio(sums[..., first : first + 2].sum(-1), 2 * sums[..., 0])

    def tied(self, sums: Floats) -> None:
        return None
