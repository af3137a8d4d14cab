"""dlib's frontal face detectors as face_recognition asks them: HOG, a level at a time, and a network.

face_recognition's `face_locations` is dlib's frontal face detector on the frame enlarged twofold: five sets of weights
slid over the frame's HOG features at every level of a pyramid whose sides shrink by 5/6. A frame shows a face when any
window of any level passes, and overlapping finds never remove the best one. So asking the same detector one level at a
time, on the same pixels, gives face_recognition's own verdict by construction, and a frame whose face shows at a coarse
level, which is small, never has its large levels searched.

Two threads in dlib corrupt the heap: work in a process of one thread. Detectors load once in each, on first use.
"""

import logging
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.kinds.samples import Pixels

logger = logging.getLogger(__name__)

LIBRARIES = ("dlib-bin", "dlib")  # the second where it was built with CUDA
CNN_WEIGHTS = "mmod_human_face_detector.dat"
UPSAMPLINGS = 1  # face_recognition's default
WINDOW, SMALLEST_LEVEL = 80, 64  # pixels; the built-in detector's own
ALL_LEVELS = 1000


def cnn_device() -> str:
    """Where the network runs: a GPU's name or ``cpu``."""
    import dlib

    if not dlib.DLIB_USE_CUDA:
        return "cpu"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cuda"


def cnn_weights() -> dict[str, str]:
    """The network's file with its sha256; HOG's weights are compiled into dlib."""
    return {CNN_WEIGHTS: sha256_of_file(_cnn_file())[0]}


def cnn_score(pixels: Pixels) -> float | None:
    """Confidence of the network's best find; None where it finds no face."""
    return max((find.confidence for find in _cnn_detector()(pixels, UPSAMPLINGS)), default=None)


def hog_score(pixels: Pixels, levels: slice, limit: float) -> float | None:
    """The best score at the coarsest of the chosen levels where one passes the limit."""
    import dlib

    detector = level_detector()
    pyramid = []
    for rows, columns in level_sizes(*pixels.shape[:2])[levels]:
        pixels = dlib.resize_image(pixels, rows, columns)
        pyramid.append(pixels)
    for level in reversed(pyramid):
        _, scores, _ = detector.run(level, 0, limit)
        if scores:
            return float(max(scores))
    return None


def level_sizes(height: int, width: int) -> list[tuple[int, int]]:
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
def level_detector() -> Any:
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


def _cnn_file() -> Path:
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
    import dlib

    if not (dlib.DLIB_USE_CUDA and dlib.cuda.get_num_devices() > 0):
        logger.warning(
            "faces: dlib %s has no CUDA here, so that model 'cnn' runs on the CPU, about 100 times slower than 'hog'; "
            "install a dlib that was built with CUDA, or write model: hog",
            dlib.__version__,
        )
    return dlib.cnn_face_detection_model_v1(str(_cnn_file()))
