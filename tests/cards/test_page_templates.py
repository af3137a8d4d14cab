"""What `twinset look` shows of templates, and of pairs and templates with pictures of any shape."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor

from cards.contact_sheet import contact_sheet
from cards.kinds.pair_block import PairBlock
from cards.kinds.template_block import DARK_RED, GREEN, YELLOW
from cards.page import write_look
from cards.sheet import MARGIN, PAPER, equally_high
from shards.kinds.reading import StoredPair, StoredTemplate
from shards.read import read_spread
from shards.storage.store import Store
from tests import small_genecis


def pixels(content: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def count(sheet: Any, colour: str) -> int:
    return int((np.abs(sheet - ImageColor.getrgb(colour)).max(axis=2) == 0).sum())


class Page(HTMLParser):
    def __init__(self, content: str) -> None:
        super().__init__()
        self.alts: list[str] = []
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.alts += [value or "" for name, value in attrs if name == "alt"]
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("task", small_genecis.TASKS)
def test_a_sheet_frames_reference_target_and_distractors(small_templates: Store, task: str) -> None:
    sheet = pixels(small_templates.read(write_look(small_templates, [task])[0]))
    # Eight frames of each colour, each of some hundred pixels' length; dashes for 72 or 112 distractors.
    assert count(sheet, YELLOW) > 8 * 4 * 400 and count(sheet, GREEN) > 8 * 4 * 200
    assert count(sheet, DARK_RED) > 8 * (9 if task == "focus-attribute" else 14) * 100
    for colour in ((255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 165, 0), (128, 0, 128)):
        assert (np.abs(sheet - colour).max(axis=2) < 12).sum() > 3000, "the discs can be seen"


def test_a_sheet_has_the_same_bytes_each_time(small_templates: Store) -> None:
    path, *_ = write_look(small_templates, ["focus-attribute"])
    content = small_templates.read(path)
    write_look(small_templates, ["focus-attribute"])
    assert small_templates.read(path) == content


def test_the_page_of_templates_holds_all_and_runs_nothing(small_templates: Store) -> None:
    content = small_templates.read(write_look(small_templates, list(small_genecis.TASKS))[-1]).decode()
    page = Page(content)
    assert "script" not in page.tags and not re.search(r"\son\w+=", content)
    assert page.text.count("<script>alert('x')</script>") == 4 and "红色" in page.text
    assert len([alt for alt in page.alts if alt.startswith("reference of")]) == 4 * 8
    assert len([alt for alt in page.alts if alt.startswith("target of")]) == 4 * 8
    assert len([alt for alt in page.alts if alt.startswith("distractor of")]) == 8 * (9 + 14 + 14 + 14)
    assert all(source.startswith(("data:", "#")) for source in page.sources), "the page loads nothing from elsewhere"
    assert "8 templates" in page.text and "attribute type color" in page.text and "8 pairs" not in page.text


@pytest.mark.parametrize("condition", ["", "x" * 20_000, "\u202eabc\x00\ud800", "👩‍🍳 and עברית " * 2000, "a\nb\tc"])
def test_conditions_that_fit_nowhere_do_not_break_the_sheet(small_templates: Store, condition: str) -> None:
    template = read_spread(small_templates, "focus-object", 1)[0]
    assert isinstance(template, StoredTemplate)
    width, height = Image.open(io.BytesIO(contact_sheet([replace(template, condition=condition)], "odd", ""))).size
    assert width > 1500 and height < 700


@pytest.mark.parametrize("shape", [(64, 64), (48, 64), (160, 90), (1000, 3), (3, 1000)])
def test_pictures_of_pairs_fill_their_places(small_dataset: Any, shape: tuple[int, int]) -> None:
    stream = io.BytesIO()
    Image.new("RGB", shape, "#ff00ff").save(stream, "PNG")
    pair = read_spread(small_dataset.store, "eq-ag", 1)[0]
    assert isinstance(pair, StoredPair)
    pair = replace(pair, image0=stream.getvalue(), image1=stream.getvalue())
    sheet = pixels(contact_sheet([pair], "t", ""))
    shown = (sheet == ImageColor.getrgb("#ff00ff")).all(axis=2)
    top = int(np.flatnonzero(shown.any(axis=1))[0])
    twins = sheet[top, MARGIN : MARGIN + 2 * PairBlock.width + 6]
    around = [tuple(pixel) for pixel in twins if tuple(pixel) != ImageColor.getrgb("#ff00ff")]
    assert set(around) <= {ImageColor.getrgb(PAPER)}, "nothing grey is put beside a picture"
    if shape[1] * 3 <= shape[0] * 4:
        assert len(around) == 6, "but for the gap, the row is full of pictures"


def test_pictures_of_one_height_keep_their_shapes() -> None:
    encoded = []
    for size in ((300, 200), (200, 300), (500, 10)):
        stream = io.BytesIO()
        Image.new("RGB", size).save(stream, "PNG")
        encoded.append(stream.getvalue())
    two = equally_high(encoded[:2], "key", 1000, 240)
    assert [picture.size for picture in two] == [(360, 240), (160, 240)]
    three = equally_high(encoded, "key", 520, 240)
    assert len({picture.height for picture in three}) == 1 and sum(picture.width for picture in three) <= 520
