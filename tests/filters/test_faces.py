"""The face filter against face_recognition itself; dlib runs in one child process, as in a build."""

import hashlib
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import cv2
import numpy as np
import pytest

from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels, Verdict
from twinset.filters.faces import Faces

ROOT = Path(__file__).resolve().parents[2]
FACE = cv2.cvtColor(cv2.imread(str(ROOT / "demo/twinset_demo/samples/face.jpg")), cv2.COLOR_BGR2RGB)


def judge(pictures: list[Pixels], model: Literal["hog", "cnn"] = "hog") -> list[Verdict]:
    frames = [Frame(str(n), pixels, -1.0, MediaFile("made", 0, "")) for n, pixels in enumerate(pictures)]
    return list(Faces(kind="faces", model=model).judge(frames))


def locate(pictures: list[Pixels], model: str = "hog") -> list[bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # face_recognition_models imports pkg_resources
        import face_recognition
    return [bool(face_recognition.face_locations(pixels, model=model)) for pixels in pictures]


@pytest.fixture(scope="module")
def child() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield pool


def plain(height: int = 240, width: int = 320) -> Pixels:
    return np.full((height, width, 3), (120, 140, 160), np.uint8)


def with_face(side: int, left: int = 40, top: int = 30, height: int = 240, width: int = 320) -> Pixels:
    pixels = plain(height, width)
    pixels[top : top + side, left : left + side] = cv2.resize(FACE, (side, side), interpolation=cv2.INTER_AREA)
    return pixels


def test_verdicts_are_face_recognitions_own(child: ProcessPoolExecutor) -> None:
    pictures = [plain(), *(with_face(side) for side in (40, 60, 80, 110, 200)), with_face(110)[:, ::-1]]
    expected = child.submit(locate, pictures).result()
    verdicts = child.submit(judge, pictures).result()
    assert [isinstance(verdict, Drop) for verdict in verdicts] == expected
    assert expected[0] is False and expected[4:6] == [True, True]


def test_cnn_has_face_recognitions_verdict(child: ProcessPoolExecutor) -> None:
    pictures = [plain(60, 80), with_face(100, left=10, top=10, height=120, width=120)]
    assert child.submit(locate, pictures, "cnn").result() == [False, True]
    keep, drop = child.submit(judge, pictures, "cnn").result()
    assert keep == Keep()
    assert drop == Drop("face")


def test_equal_frames_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Pixels]()
    module = SimpleNamespace(face_locations=lambda pixels, model: asked.append(pixels) or [])
    monkeypatch.setitem(sys.modules, "face_recognition", module)
    assert judge([plain(), plain(), FACE, plain()]) == [Keep()] * 4 and len(asked) == 2


def test_the_digest_gets_the_weights_that_are_files() -> None:
    assert Faces(kind="faces").weights() == {}
    (name, digest), *rest = Faces(kind="faces", model="cnn").weights().items()
    package = find_spec("face_recognition_models")
    assert package is not None and package.origin is not None
    weights = Path(package.origin).parent / "models/mmod_human_face_detector.dat"
    assert (name, digest, rest) == (weights.name, hashlib.sha256(weights.read_bytes()).hexdigest(), [])
