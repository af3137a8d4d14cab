"""What `twinset look` shows of triplets: pictures with the condition between them, or a table without pictures."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor

from cards.contact_sheet import contact_sheet
from cards.ornaments import BUBBLE, OVAL_FILL
from cards.page import write_look
from cards.sheet import GREY
from shards.kinds.reading import StoredTriplet
from shards.read import read_spread, read_spread_rows
from shards.storage.store import Store
from tests.cards.test_page_templates import Page, count, pixels


@pytest.mark.parametrize("subset, pictures", [("triplets", 3), ("two-images", 2)])
def test_a_sheet_shows_conditions_in_ovals_and_captions_in_bubbles(
    small_triplets: Store, subset: str, pictures: int
) -> None:
    written = write_look(small_triplets, [subset])
    assert written == [f"{subset}/_meta/look.png", f"look-{subset}.html"]
    content = small_triplets.read(written[0])
    sheet = pixels(content)
    assert count(sheet, OVAL_FILL) > 8 * 2000 and count(sheet, BUBBLE) > 8 * pictures * 2000
    # Dashes of grey frame distractors, of which only some triplets have any.
    dashes = count(sheet, GREY) - count(pixels(contact_sheet([], "t", "")), GREY)
    assert (dashes > 8 * 400) == (pictures == 3)
    for colour in ((255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 165, 0), (128, 0, 128)):
        assert (np.abs(sheet - colour).max(axis=2) < 12).sum() > 5000, "the discs can be seen"
    write_look(small_triplets, [subset])
    assert small_triplets.read(written[0]) == content


def test_the_page_of_triplets_holds_all_and_runs_nothing(small_triplets: Store) -> None:
    content = small_triplets.read(write_look(small_triplets, ["triplets", "two-images"])[-1]).decode()
    page = Page(content)
    assert "script" not in page.tags and not re.search(r"\son\w+=", content)
    parts = {part: sum(alt.startswith(f"{part} of") for alt in page.alts) for part in ("reference", "distractor")}
    assert parts == {"reference": 16, "distractor": 8} and len(page.alts) == 8 * 3 + 8 * 2
    assert page.text.count("<script>alert('x')</script>") == 3 + 2, "of the condition, and in captions"
    assert all(source.startswith(("data:", "#")) for source in page.sources), "the page loads nothing from elsewhere"
    assert "subject disc, concreteness 4.85" in page.text and "a disc beside red disc" in page.text


def test_an_index_is_a_table_without_pictures(small_triplets: Store) -> None:
    small_triplets.write("index-only/_meta/look.png", b"of a build that had images")
    assert write_look(small_triplets, ["index-only"]) == ["look-index-only.html"]
    assert small_triplets.size("index-only/_meta/look.png") is None
    page = Page(small_triplets.read("look-index-only.html").decode())
    assert "img" not in page.tags and page.tags.count("tr") == 1 + 8
    assert "beside red disc" in page.text and "a disc on blue ground" in page.text and "8 triplets" in page.text
    assert page.tags.count("th") == 3, "no column for distractors, which there are none of"
    rows = read_spread_rows(small_triplets, "index-only", 3)
    assert [row.words["reference_id"] for row in rows] == ["1", "5", "7"]  # places 1, 4 and 6 of 0 to 8 without 3
    assert write_look(small_triplets, ["index-only"], 3) == ["look-3-index-only.html"]
    assert Page(small_triplets.read("look-3-index-only.html").decode()).tags.count("tr") == 1 + 3


@pytest.mark.parametrize("text", ["", "x" * 20_000, "\u202eabc\x00\ud800", "👩‍🍳 and עברית " * 2000, "a\nb\tc"])
def test_words_that_fit_nowhere_do_not_break_the_sheet(small_triplets: Store, text: str) -> None:
    triplet = read_spread(small_triplets, "triplets", 1)[0]
    assert isinstance(triplet, StoredTriplet)
    described = triplet.json.model_copy(update={"captions": dict.fromkeys(triplet.json.captions, text)})
    content = contact_sheet([replace(triplet, condition=text, json=described)], "odd", "")
    width, height = Image.open(io.BytesIO(content)).size
    assert width > 1500 and height < 700


@pytest.mark.parametrize("shape", [(64, 64), (2000, 2), (2, 2000)])
def test_pictures_of_any_shape_have_one_height(small_triplets: Store, shape: tuple[int, int]) -> None:
    stream = io.BytesIO()
    Image.new("RGB", shape, "#ff00ff").save(stream, "PNG")
    triplet = read_spread(small_triplets, "two-images", 1)[0]
    assert isinstance(triplet, StoredTriplet)
    sheet: Any = pixels(
        contact_sheet([replace(triplet, images=dict.fromkeys(triplet.images, stream.getvalue()))], "t", "")
    )
    shown = (sheet == ImageColor.getrgb("#ff00ff")).all(axis=2)
    columns = np.flatnonzero(shown.any(axis=0))
    heights = {int(shown[:, column].sum()) for column in columns}
    assert len(heights) == 1 and len(columns) >= 2
    assert columns[-1] - columns[0] < 790, "both stand within their block"
