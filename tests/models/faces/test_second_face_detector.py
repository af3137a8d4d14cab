"""Faces by two detectors: which of them rejects a frame, and what the digest says of the second."""

import hashlib
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cv2
import numpy as np
import pytest
from pydantic import ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels, Verdict
from twinset.filters.faces import Faces
from twinset.models.faces import second_face_detector

ROOT = Path(__file__).resolve().parents[3]
FACE = cv2.cvtColor(cv2.imread(str(ROOT / "demo/twinset_demo/samples/face.jpg")), cv2.COLOR_BGR2RGB)

pytestmark = pytest.mark.skipif(find_spec("yuface") is None, reason="yuface has wheels for x86-64 alone")


def pictures() -> list[Pixels]:
    """No face; one that both detectors find; one upside down, which dlib misses."""
    plain = np.full((240, 320, 3), (120, 140, 160), np.uint8)
    both, tilted = plain.copy(), plain.copy()
    both[40:200, 80:240] = cv2.resize(FACE, (160, 160), interpolation=cv2.INTER_AREA)
    tilted[40:200, 80:240] = both[40:200, 80:240][::-1]
    return [plain, both, tilted]


def judge(settings: dict[str, Any]) -> list[Verdict]:
    frames = [Frame(str(n), pixels, -1.0, MediaFile("made", 0, "")) for n, pixels in enumerate(pictures())]
    return list(Faces.model_validate({"kind": "faces", **settings}).open()(frames))


@pytest.fixture(scope="module")
def child() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # dlib runs in a process of its own
        yield pool


def reasons(verdicts: list[Verdict]) -> list[str | None]:
    return [verdict.reason if isinstance(verdict, Drop) else None for verdict in verdicts]


def test_any_of_adds_to_the_published_verdicts(child: ProcessPoolExecutor) -> None:
    published = child.submit(judge, {}).result()
    both = child.submit(judge, {"detectors": "any-of"}).result()
    assert reasons(published) == [None, "face", None]
    assert reasons(both) == [None, "face", "face-by-second"]
    assert both[:2] == published[:2]
    assert isinstance(both[2], Drop) and both[2].score is not None and 0.65 <= both[2].score <= 1


def test_confirm_asks_for_both(child: ProcessPoolExecutor) -> None:
    published = child.submit(judge, {}).result()
    assert isinstance(published[1], Drop)
    confirmed = child.submit(judge, {"detectors": "confirm"}).result()
    assert confirmed == [Keep(), Drop("face-confirmed", published[1].score), Keep()]


def test_the_limit_decides_what_the_second_detector_finds(child: ProcessPoolExecutor) -> None:
    nothing = {"second_limit": 1}
    assert reasons(child.submit(judge, {"detectors": "any-of", **nothing}).result()) == [None, "face", None]
    assert reasons(child.submit(judge, {"detectors": "confirm", **nothing}).result()) == [None, None, None]


@pytest.mark.parametrize("shape", [(3, 400), (1100, 20)])
def test_a_score_belongs_to_the_picture_whatever_its_layout_in_memory(shape: tuple[int, int]) -> None:
    pixels = cv2.resize(FACE, shape[::-1], interpolation=cv2.INTER_AREA)
    score = second_face_detector.best_score(pixels)
    assert 0 <= score <= 1
    assert second_face_detector.best_score(np.asfortranarray(pixels)) == score
    assert second_face_detector.best_score(np.repeat(pixels, 2, axis=1)[:, ::2]) == score


def test_large_faces_and_small_ones_are_found() -> None:
    street = np.full((720, 1280, 3), (120, 140, 160), np.uint8)
    street[300:340, 600:640] = cv2.resize(FACE, (40, 40), interpolation=cv2.INTER_AREA)
    close = cv2.resize(FACE[40:220], (1280, 900))
    assert min(second_face_detector.best_score(pixels) for pixels in (street, close)) > 0.65


def test_the_digest_gets_version_and_weights_where_it_is_on() -> None:
    alone, two = Faces(kind="faces"), Faces(kind="faces", detectors="any-of")
    assert alone.model_dump() == {"kind": "faces", "model": "hog", "mode": "exact"}
    assert (alone.open().weights(), "yuface" in alone.open().libraries) == ({}, False)
    assert two.model_dump() == {**alone.model_dump(), "detectors": "any-of", "second_limit": two.second_limit}
    assert Faces.model_validate(two.model_dump()) == two
    opened = two.open()
    assert (opened.isolation, "yuface" in opened.libraries) == ("process", True)
    package = find_spec("yuface")
    assert package is not None and package.origin is not None
    library = Path(package.origin).with_name("libfacedetection.so")
    assert opened.weights()[f"yuface/{library.name}"] == hashlib.sha256(library.read_bytes()).hexdigest()


def test_the_card_names_the_detectors() -> None:
    assert "libfacedetection" not in Faces(kind="faces").how_judged()
    for detectors in ("any-of", "confirm"):
        said = Faces.model_validate({"kind": "faces", "detectors": detectors, "second_limit": 0.7}).how_judged()
        assert (
            "face_recognition (dlib's detector `hog`" in said
            and "libfacedetection (confidence of at least 0.7)" in said
        )


def test_a_package_without_what_is_compiled_in_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__init__.py").touch()
    two = Faces(kind="faces", detectors="any-of")
    for origin in (str(tmp_path / "__init__.py"), None):  # a mere folder has no origin
        left = ModuleSpec("yuface", None, origin=origin)
        with patch.object(second_face_detector, "find_spec", return_value=left):
            with pytest.raises(WrongUse, match=r"subsets\.x\.filters\.0\.detectors.*yuface.*twinset\[faces\]"):
                two.check_inputs("subsets.x.filters.0", ["models"])
            with pytest.raises(WrongUse, match=r"twinset\[faces\]"):
                two.open().weights()
    second_face_detector._detector.cache_clear()
    monkeypatch.setitem(sys.modules, "yuface.yuface", None)
    with pytest.raises(WrongUse, match=r"yuface cannot be loaded .*--force-reinstall yuface"):
        second_face_detector.best_score(FACE)


def test_grey_noisy_and_odd_frames_are_judged() -> None:
    """As damaged videos give them: half of the frame grey, noise, one colour, a pixel wide."""
    grey = np.repeat(cv2.cvtColor(FACE, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    assert second_face_detector.best_score(grey) > 0.65
    rng = np.random.default_rng(0)
    torn = FACE.copy()
    torn[len(torn) // 3 :] = 128
    frames = [
        torn,
        np.zeros_like(FACE),
        *(rng.integers(0, 256, (*shape, 3), np.uint8) for shape in ((1, 1), (1, 5000))),
    ]
    assert [score for score in map(second_face_detector.best_score, frames) if not 0 <= score <= 0.65] == []


def test_a_limit_without_a_second_detector_is_refused() -> None:
    with pytest.raises(ValidationError, match="any-of or confirm"):
        Faces(kind="faces", second_limit=0.5)
