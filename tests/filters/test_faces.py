"""The face filter against face_recognition itself; dlib runs in one child process, as in a build."""

import hashlib
import sys
import warnings
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


def locate(pictures: list[Pixels]) -> list[bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # face_recognition_models imports pkg_resources
        import face_recognition
    return [bool(face_recognition.face_locations(pixels)) for pixels in pictures]


def picture(side: int) -> Pixels:
    """A grey picture with a face of this many pixels."""
    pixels = np.full((160, 200, 3), (120, 140, 160), np.uint8)
    pixels[20 : 20 + side, 30 : 30 + side] = cv2.resize(FACE, (side, side), interpolation=cv2.INTER_AREA)
    return pixels


def test_verdicts_are_face_recognitions_own() -> None:
    pictures = [picture(side) for side in (1, 60, 110)]
    with ProcessPoolExecutor(1, get_context("spawn")) as child:
        expected = child.submit(locate, pictures).result()
        verdicts = child.submit(judge, pictures).result()
    assert [isinstance(verdict, Drop) for verdict in verdicts] == expected
    assert expected[0] is False and expected[2] is True


def test_equal_frames_are_searched_once_by_the_model_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    module = SimpleNamespace(face_locations=lambda pixels, model: asked.append(model) or [])
    monkeypatch.setitem(sys.modules, "face_recognition", module)
    assert judge([picture(1), picture(1), FACE, picture(1)], "cnn") == [Keep()] * 4 and asked == ["cnn"] * 2


def test_the_digest_gets_the_weights_that_are_files() -> None:
    assert Faces(kind="faces").weights() == {}
    (name, digest), *rest = Faces(kind="faces", model="cnn").weights().items()
    package = find_spec("face_recognition_models")
    assert package is not None and package.origin is not None
    weights = Path(package.origin).parent / "models/mmod_human_face_detector.dat"
    assert (name, digest, rest) == (weights.name, hashlib.sha256(weights.read_bytes()).hexdigest(), [])
