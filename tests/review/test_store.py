"""Answers in SQLite: once each, on the disk before anything else, taken back but never lost. Images without marks."""

import io
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.neutral_images import in_one_form
from twinset.review.store import AnsweredOtherwise, AnswerStore
from twinset.shards.media.decode import UnreadableImage

FIRST = Answer(
    stage="s", task="s-a", binding="b", annotator="anna", answer="0", shown=("1", "0"), position=1, at="2020-01-01"
)
SECOND = replace(FIRST, task="s-b")
ASKED = {("s", "s-a", "b"), ("s", "s-b", "b")}


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "_review" / "answers.sqlite")


def test_a_repeated_answer_is_one_row_and_another_one_needs_an_undo_first(store: AnswerStore) -> None:
    assert store.save(FIRST)
    assert not store.save(replace(FIRST, seconds=9.0))
    assert read_answers(store.path, "s") == [FIRST]
    with pytest.raises(AnsweredOtherwise, match="undo that first"):
        store.save_all([SECOND, replace(FIRST, answer="1")])
    assert read_answers(store.path, "s") == [FIRST], "all are stored or none"
    assert store.undo("anna", ASKED) == FIRST
    assert store.save_all([SECOND, replace(FIRST, answer="1")]) == 2


def test_undo_takes_the_last_answer_that_is_still_asked_and_keeps_it_in_the_file(store: AnswerStore) -> None:
    ben, stale = replace(SECOND, annotator="ben"), replace(FIRST, binding="stale")
    store.save_all([FIRST, SECOND, ben, stale])
    other = AnswerStore(store.path)  # as of another process, or after a restart
    assert [other.undo("anna", ASKED) for _ in range(3)] == [SECOND, FIRST, None]
    assert store.answers() == {("s", "s-b", "b"): {"ben": ben}, ("s", "s-a", "stale"): {"anna": stale}}
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT task, answer FROM undone").fetchall() == [("s-b", "0"), ("s-a", "0")]


def test_an_answer_is_on_the_disk_when_saving_returns_and_its_lease_is_gone(store: AnswerStore) -> None:
    names = ("journal_mode", "synchronous")
    assert [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == ["wal", 2]
    store.lease("anna", dict.fromkeys(ASKED, 20.0))
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    store.save(FIRST)
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "INSERT", "DELETE", "COMMIT"]
    assert AnswerStore(store.path).leases(10.0) == {("s", "s-b", "b"): {"anna": 20.0}}


def test_a_lease_that_is_over_or_has_no_time_holds_nothing(store: AnswerStore) -> None:
    store.lease("anna", {("s", "s-a", "b"): 20.0, ("s", "s-b", "b"): 10.0})
    with sqlite3.connect(store.path) as connection:
        connection.execute("INSERT INTO leases VALUES ('s', 's-b', 'b', 'eve', 'tomorrow')")
    assert store.leases(10.0) == {("s", "s-a", "b"): {"anna": 20.0}}


DRAWN = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8))
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
MARK = b"made by a generator"


def encoded(form: str, orientation: int = 1, size: tuple[int, int] = (40, 24), icc: bytes = ICC) -> bytes:
    """An image with marks in all that a form can hold beside it."""
    exif, text = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = orientation, MARK.decode()  # ImageDescription
    text.add_text("parameters", MARK.decode())
    more: dict[str, Any] = {
        "JPEG": {"comment": MARK, "xmp": MARK},
        "PNG": {"pnginfo": text},
        "WEBP": {"xmp": MARK, "lossless": True},
    }
    content = io.BytesIO()
    DRAWN.resize(size).save(content, form, exif=exif, icc_profile=icc, **more[form])
    return content.getvalue()


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_pixels_colours_and_orientation_stay_and_nothing_else(form: str, orientation: int) -> None:
    before = encoded(form, orientation)
    [after] = in_one_form([before])
    assert MARK in before and MARK not in after
    with Image.open(io.BytesIO(before)) as first, Image.open(io.BytesIO(after)) as second:
        assert not {*second.info} & {"exif", "icc_profile", "comment", "xmp", "parameters"}
        off = np.abs(np.asarray(ImageOps.exif_transpose(first)).astype(int) - np.asarray(second))
    assert (second.format, off.mean() < 8) == ("JPEG", True)  # of noise, at the quality of datasets


def test_a_broken_image_or_profile_shows_no_mark() -> None:
    assert MARK not in in_one_form([encoded("JPEG", icc=b"no profile")])[0]
    with pytest.raises(UnreadableImage):
        in_one_form([encoded("PNG"), encoded("JPEG")[:-200]])


def test_a_photo_and_a_generated_image_come_in_one_form() -> None:
    served = in_one_form([encoded("PNG", size=(64, 48)), encoded("JPEG", 6, size=(30, 40))])
    images = [Image.open(io.BytesIO(content)) for content in served]
    assert [(image.format, image.size) for image in images] == [("JPEG", (40, 30)), ("JPEG", (40, 30))]
    assert images[0].quantization == images[1].quantization, "one quality"  # type: ignore[attr-defined]
