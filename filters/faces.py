"""Frames that show a face: EqBen (B.3) discards those in which face_recognition finds one.

face_recognition misses small, tilted, dark and profile faces. `models.faces.second_face_detector` finds most of these;
`Faces.detectors` says how the two are combined, and docs/frames.md what each lets through.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from twinset.contracts.kinds.samples import Drop, Frame, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter, FrameFilter, Isolation
from twinset.contracts.source import Need
from twinset.models.device import check_opencv
from twinset.models.faces import dlib_detector
from twinset.models.faces import second_face_detector as second

# Neighbouring levels mostly see the same face, so that every second one will do, from the second on, with a lower limit
# for the score of a face that falls between two of them. Chosen on the real clips; tests/benchmarks/bench_faces.py
# shows where it disagrees.
FAST_LEVELS = slice(1, None, 2)
FAST_LIMIT = -0.1

# Of libfacedetection's confidence. Chosen on clips and photographs other than those of docs/frames.md.
SECOND_LIMIT = 0.65


class Faces(Filter):
    """Drops frames that show a human face (EqBen, B.3).

    model: of face_recognition: ``hog`` on the CPU, ``cnn`` on a GPU. mode: ``exact`` gives face_recognition's own
    verdicts, ``fast`` is several times faster. On video it disagreed on 2 of 487 frames; on photographs it missed 8 of
    37 faces: use it for video alone.

    detectors: whose finds count. ``published``: face_recognition alone, as in the paper. ``any-of``: a frame goes when
    face_recognition or libfacedetection finds a face. ``confirm``: a frame goes when both do. face_recognition is asked
    first, the other only where that leaves the verdict open. second_limit: libfacedetection's finds count from this
    confidence on (0.2 to 1).
    """

    kind: Literal["faces"]
    model: Literal["hog", "cnn"] = "hog"
    mode: Literal["exact", "fast"] = "exact"
    detectors: Literal["published", "any-of", "confirm"] = "published"
    second_limit: float = Field(default=SECOND_LIMIT, ge=second.LOWEST_SCORE, le=1)

    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {
        "face": "a frame shows a human face",
        "face-by-second": "face_recognition finds no human face in a frame, but libfacedetection does",
        "face-confirmed": "face_recognition and libfacedetection both find a human face in a frame",
    }

    @model_validator(mode="after")
    def _settings_fit(self) -> Faces:
        if self.model == "cnn" and self.mode == "fast":
            raise ValueError("mode 'fast' belongs to model 'hog'; with model 'cnn' write mode: exact")
        if self.detectors == "published" and "second_limit" in self.model_fields_set:
            raise ValueError("second_limit belongs to a second detector; write detectors: any-of or confirm")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_off(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Settings enter the digest: without a second detector it stays what it was before there was one.
        settings: dict[str, Any] = handler(self)
        if self.detectors == "published":
            del settings["detectors"], settings["second_limit"]
        return settings

    def how_judged(self) -> str:
        first = f"face_recognition (dlib's detector `{self.model}`, `mode: {self.mode}`)"
        second_one = f"libfacedetection (confidence of at least {self.second_limit:g})"
        return {
            "published": f"A sample is rejected if {first} finds a face in a frame of it.",
            "any-of": f"A sample is rejected if {first} or {second_one} finds a face in a frame of it, which is "
            "stricter than the paper.",
            "confirm": f"A sample is rejected only if both {first} and {second_one} find a face in a frame of it.",
        }[self.detectors]

    def open(self) -> FacesFilter:
        return FacesFilter(self) if self.detectors == "published" else TwoDetectorsFilter(self)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs and self.detectors != "published":
            second.check_installed(f"{key}.detectors")
            check_opencv(f"{key}.detectors")


class FacesFilter(FrameFilter):
    """Drops frames with a face; the score is the detector's, of the best find at the coarsest level with one.

    ``exact`` gives the verdicts of ``face_recognition.face_locations(pixels, model=model)``. ``fast`` searches every
    second level and has HOG only. Without CUDA in dlib, as in dlib-bin, ``cnn`` works on the CPU, slowly.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = dlib_detector.LIBRARIES
    isolation: ClassVar[Isolation] = "process"  # two threads in dlib corrupt the heap

    def __init__(self, settings: Faces) -> None:
        self.settings = settings

    def device(self) -> str | None:
        """Where the neural network runs: a GPU's name or ``cpu``; None for HOG, which is none."""
        return None if self.settings.model == "hog" else dlib_detector.cnn_device()

    def weights(self) -> dict[str, str]:
        """Model files by name, with their sha256; none for HOG, whose weights are compiled into dlib."""
        return {} if self.settings.model == "hog" else dlib_detector.cnn_weights()

    def __call__(self, frames: Sequence[Frame]) -> list[Verdict]:
        return [self._judge(np.ascontiguousarray(frame.pixels)) for frame in frames]

    def _judge(self, pixels: Pixels) -> Verdict:
        if self.settings.model == "cnn":
            score = dlib_detector.cnn_score(pixels)
        elif self.settings.mode == "fast":
            score = dlib_detector.hog_score(pixels, FAST_LEVELS, FAST_LIMIT)
        else:
            score = dlib_detector.hog_score(pixels, slice(None), 0.0)
        return Keep() if score is None else Drop("face", float(score))


class TwoDetectorsFilter(FacesFilter):
    """face_recognition's verdicts together with those of `models.faces.second_face_detector`.

    The score of ``face`` and ``face-confirmed`` is face_recognition's, that of ``face-by-second`` libfacedetection's.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = (*FacesFilter.libraries, second.PACKAGE, "opencv-python")

    def weights(self) -> dict[str, str]:
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
