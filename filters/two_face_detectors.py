"""Faces by two detectors: what the paper's filter finds together with `models.faces.second_face_detector`."""

from __future__ import annotations

from typing import ClassVar

from twinset.filters.faces import FacesFilter
from twinset.models.faces import second_face_detector as second
from twinset.shards.kinds.samples import Drop, Keep, Pixels, Verdict


class TwoDetectorsFilter(FacesFilter):
    """face_recognition's verdicts together with those of `models.faces.second_face_detector`.

    The score of ``face`` and ``face-confirmed`` is face_recognition's, that of ``face-by-second`` libfacedetection's.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = (*FacesFilter.libraries, second.PACKAGE, "opencv-python")

    def weights(self) -> dict[str, str]:
        """As `FacesFilter.weights`, with those of the second detector."""
        return {**super().weights(), **second.weights("filter faces: detectors")}

    def _judge(self, pixels: Pixels) -> Verdict:
        # face_recognition first: on most frames it is the cheaper one.
        verdict = super()._judge(pixels)
        seen, confirm = isinstance(verdict, Drop), self.settings.detectors == "confirm"
        if seen != confirm:  # decided already
            return verdict
        score = second.best_score(pixels)
        if score < self.settings.second_limit:
            return Keep()
        return Drop("face-confirmed", verdict.score) if isinstance(verdict, Drop) else Drop("face-by-second", score)
