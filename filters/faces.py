"""Frames that show a face: EqBen (B.3) discards those in which face_recognition finds one.

face_recognition's `face_locations` is dlib's frontal face detector on the frame enlarged twofold: five sets of weights
slid over the frame's HOG features at every level of a pyramid whose sides shrink by 5/6. A frame shows a face when any
window of any level passes, and overlapping finds never remove the best one. So asking the same detector one level at a
time, on the same pixels, gives face_recognition's own verdict by construction, and a frame whose face shows at a coarse
level, which is small, never has its large levels searched.

Two threads in dlib corrupt the heap: `isolation` is ``process``, and models load once in each, on first use.

face_recognition misses small, tilted, dark and profile faces. `models.faces.second_face_detector` finds most of these;
`Faces.detectors` says how the two are combined, and docs/frames.md what each lets through.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import TwinsetError, WrongUse
from twinset.manifests.source import Need
from twinset.models.faces import second_face_detector as second
from twinset.shards.contracts import Filter, FrameFilter, Isolation
from twinset.shards.kinds.samples import Drop, Frame, Keep, Pixels, Verdict

logger = logging.getLogger(__name__)

CNN_WEIGHTS = "mmod_human_face_detector.dat"
UPSAMPLINGS = 1  # face_recognition's default
WINDOW, SMALLEST_LEVEL = 80, 64  # pixels; the built-in detector's own
ALL_LEVELS = 1000

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
        """As `manifests.source.FilterSettings.how_judged`: the detectors, and how they are combined."""
        first = f"face_recognition (`model: {self.model}`, `mode: {self.mode}`)"
        second_one = f"libfacedetection (confidence of at least {self.second_limit:g})"
        return {
            "published": f"Frames in which {first} finds a face are rejected.",
            "any-of": f"Frames in which {first} or {second_one} finds a face are rejected: stricter than the paper.",
            "confirm": f"Only frames in which both {first} and {second_one} find a face are rejected.",
        }[self.detectors]

    def open(self) -> FacesFilter:
        """As `shards.contracts.Filter.open`."""
        if self.detectors == "published":
            return FacesFilter(self)
        from twinset.filters.two_face_detectors import TwoDetectorsFilter

        return TwoDetectorsFilter(self)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Filter.check_inputs`: the package of the second detector, where it is asked for."""
        if "models" in needs and self.detectors != "published":
            second.check_installed(f"{key}.detectors")


class FacesFilter(FrameFilter):
    """Drops frames with a face; the score is the detector's, of the best find at the coarsest level with one.

    ``exact`` gives the verdicts of ``face_recognition.face_locations(pixels, model=model)``. ``fast`` searches every
    second level and has HOG only. Without CUDA in dlib, as in dlib-bin, ``cnn`` works on the CPU, slowly.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("dlib-bin", "dlib")  # the second where it was built with CUDA
    isolation: ClassVar[Isolation] = "process"

    def __init__(self, settings: Faces) -> None:
        self.settings = settings

    def device(self) -> str | None:
        """Where the neural network runs: a GPU's name or ``cpu``; None for HOG, which is none."""
        if self.settings.model == "hog":
            return None
        import dlib

        if not dlib.DLIB_USE_CUDA:
            return "cpu"
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "cuda"

    def weights(self) -> dict[str, str]:
        """Model files by name, with their sha256; none for HOG, whose weights are compiled into dlib."""
        if self.settings.model == "hog":
            return {}
        return {CNN_WEIGHTS: sha256_of_file(_cnn_weights())[0]}

    def __call__(self, frames: Sequence[Frame]) -> list[Verdict]:
        return [self._judge(np.ascontiguousarray(frame.pixels)) for frame in frames]

    def _judge(self, pixels: Pixels) -> Verdict:
        if self.settings.model == "cnn":
            score = max((find.confidence for find in _cnn_detector()(pixels, UPSAMPLINGS)), default=None)
        elif self.settings.mode == "fast":
            score = _hog_score(pixels, FAST_LEVELS, FAST_LIMIT)
        else:
            score = _hog_score(pixels, slice(None), 0.0)
        return Keep() if score is None else Drop("face", float(score))


def _hog_score(pixels: Pixels, levels: slice, limit: float) -> float | None:
    """The best score at the coarsest of the chosen levels where one passes the limit."""
    import dlib

    detector = _level_detector()
    pyramid = []
    for rows, columns in _level_sizes(*pixels.shape[:2])[levels]:
        pixels = dlib.resize_image(pixels, rows, columns)
        pyramid.append(pixels)
    for level in reversed(pyramid):
        _, scores, _ = detector.run(level, 0, limit)
        if scores:
            return float(max(scores))
    return None


def _level_sizes(height: int, width: int) -> list[tuple[int, int]]:
    """(rows, columns) of every level that dlib searches, finest first.

    dlib counts its levels by the corners of a rectangle, and sizes them by whole pixels: both are followed here.
    """
    import dlib

    shrink = dlib.pyramid_down(6)
    corners = dlib.pyramid_down(2).rect_up(dlib.rectangle(0, 0, width - 1, height - 1))
    size = corners.bottom() + 1, corners.right() + 1
    corners = dlib.rectangle(0, 0, size[1] - 1, size[0] - 1)
    sizes = [size]
    while min((corners := shrink.rect_down(corners)).width(), corners.height()) >= SMALLEST_LEVEL:
        size = size[0] * 5 // 6, size[1] * 5 // 6
        sizes.append(size)
    return sizes


@cache
def _level_detector() -> Any:
    """dlib's frontal face detector, made to search the picture itself and no smaller copies of it.

    The depth of the pyramid has no setter in Python, but is a number in the detector's serialised form.
    """
    import dlib

    (state,) = dlib.get_frontal_face_detector().__getstate__()
    deep = _serialised(WINDOW, WINDOW, ALL_LEVELS, SMALLEST_LEVEL, SMALLEST_LEVEL)
    if state.count(deep) != 1:
        raise TwinsetError(
            f"dlib {dlib.__version__} has another frontal face detector than dlib-bin 20.0.1, on which the faces "
            "filter relies; install the versions of requirements.lock"
        )
    detector = dlib.fhog_object_detector.__new__(dlib.fhog_object_detector)
    detector.__setstate__((state.replace(deep, _serialised(WINDOW, WINDOW, 1, SMALLEST_LEVEL, SMALLEST_LEVEL)),))
    return detector


def _serialised(*numbers: int) -> bytes:
    """Positive integers as dlib writes them: the count of their bytes, then these, least first."""
    sizes = [(number.bit_length() + 7) // 8 for number in numbers]
    return b"".join(
        bytes([size]) + number.to_bytes(size, "little") for number, size in zip(numbers, sizes, strict=True)
    )


def _cnn_weights() -> Path:
    # Importing face_recognition_models would need pkg_resources, which setuptools is about to lose.
    package = find_spec("face_recognition_models")
    if package is None or package.origin is None:
        raise WrongUse(
            "filter faces: model 'cnn' needs the package face_recognition_models; install requirements.lock, "
            "or write model: hog"
        )
    return Path(package.origin).parent / "models" / CNN_WEIGHTS


@cache
def _cnn_detector() -> Any:
    """The detector that face_recognition calls for ``model="cnn"``."""
    import dlib

    if not (dlib.DLIB_USE_CUDA and dlib.cuda.get_num_devices() > 0):
        logger.warning(
            "faces: dlib %s has no CUDA here, so that model 'cnn' runs on the CPU, about 100 times slower than 'hog'; "
            "install a dlib that was built with CUDA, or write model: hog",
            dlib.__version__,
        )
    return dlib.cnn_face_detection_model_v1(str(_cnn_weights()))
