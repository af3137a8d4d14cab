"""What `twinset look` shows: samples of every kind, what differs between them, and nobody's script."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from PIL import Image, ImageColor

from tests.made_datasets import MadeDataset
from twinset.cards.kinds import CARD_KINDS
from twinset.cards.page import write_look
from twinset.cards.sheet import MARGIN, MARKS, OUTLINES, Block, Cell, contact_sheet, words
from twinset.shards.read import read_spread

ODD = ["", "x" * 5000, "\u202eabc\x00\ud800", "👩‍🍳 and עברית " * 500, "a\nb\tc"]


class Page(HTMLParser):
    def __init__(self, content: str) -> None:
        super().__init__()
        self.alts: list[str] = []
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(content)
        assert "script" not in self.tags and not re.search(r"\son\w+=", content), "a page runs nothing"
        assert all(source.startswith(("data:", "#")) for source in self.sources), "and loads nothing from elsewhere"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.alts += [value or "" for name, value in attrs if name == "alt"]
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, label: str) -> int:
        return sum(alt.startswith(f"{label} of") for alt in self.alts)


def encoded(shape: tuple[int, int], colour: str = "#ff00ff") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", shape, colour).save(stream, "PNG")
    return stream.getvalue()


#: Of each kind: subsets, images by label, hostile texts, and what else the page says.
PAGES = {
    "pair": (["eq-ag", "eq-gebc"], {"image": 32}, 10, ["missing-media", "free <b>for</b> tests", "unsaid 2"]),
    "triplet": (
        ["triplets", "two-images"],
        {"reference": 16, "target": 16, "distractor": 8},
        5,
        ["subject disc | con"],
    ),
    "template": (["focus-attribute"], {"reference": 8, "target": 8, "distractor": 8 * 9}, 1, ["attribute type color"]),
    "text pair": (["text"], {"image": 8}, 1, ["replace att"]),
}


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_of_each_kind_shows_all(every_kind: MadeDataset, kind: str) -> None:
    names, images, hostile, texts = PAGES[kind]
    written = write_look(every_kind.store, names)
    assert written == [*(f"{name}/_meta/look.png" for name in names), f"look-{'-'.join(names)}.html"]
    page = Page(every_kind.text(written[-1]))
    assert {label: page.count(label) for label in images} == images
    assert page.text.count("<script>alert('x')</script>") == hostile and "mark" in page.tags and "红色" in page.text
    assert [text for text in (f"8 {kind}s", *texts) if text not in page.text] == []
    assert page.text.count("A distractor fits") == (kind == "triplet"), "said where there are some"


def test_an_index_is_a_table_without_pictures(made_triplets: MadeDataset) -> None:
    store = made_triplets.store
    store.write("index-only/_meta/look.png", b"of a build that had images")
    assert write_look(store, ["index-only"]) == ["look-index-only.html"]
    assert store.size("index-only/_meta/look.png") is None
    page = Page(made_triplets.text("look-index-only.html"))
    assert "img" not in page.tags and page.tags.count("tr") == 1 + 8
    assert page.tags.count("th") == 5, "no columns for distractors, which there are none of"
    rows = read_spread(store, "index-only", 3, images=False)
    assert [row.words["reference_id"] for row in rows] == ["1", "5", "7"]  # places 1, 4 and 6 of 0 to 8 without 3


def test_a_sheet_shows_pictures_marks_and_outlines() -> None:
    cell = Cell(image=encoded((90, 90)), words=[("a", False), ("disc", True)], outline="right")
    sheet = Image.open(io.BytesIO(contact_sheet([Block("key", [cell], 1, "")], "title", "")))
    areas = {colour: count for count, colour in sheet.convert("RGB").getcolors(1 << 24) or ()}
    for colour, least in (("#ff00ff", 1000), (MARKS[0], 20), (OUTLINES["right"], 100)):
        assert areas[ImageColor.getrgb(colour)[:3]] > least, colour


@pytest.mark.slow
@pytest.mark.parametrize("text", ODD)
def test_words_that_fit_nowhere_do_not_break_the_sheet(every_kind: MadeDataset, text: str) -> None:
    blocks = []
    for name in ("eq-ag", "triplets", "focus-object", "text"):
        sample = read_spread(every_kind.store, name, 1)[0]
        described = sample.json
        if sample.kind.name == "triplet":
            described = described.model_copy(update={"captions": dict.fromkeys(described.captions, text)})
        sample = replace(sample, texts=dict.fromkeys(sample.texts, text), json=described)
        blocks.append(CARD_KINDS[sample.kind.name].block(sample))
    width, height = Image.open(io.BytesIO(contact_sheet(blocks, text, text))).size
    assert width == 1580 + 2 * MARGIN and height < 4000


def test_captions_that_differ_in_accents_or_in_a_script_look_different() -> None:
    def sheet_of(text: str) -> bytes:
        return contact_sheet([Block("key", [Cell(image=encoded((9, 9)), words=words(text))], 1, "")], "t", "")

    texts = ["läuft", "lauft", "l\u00e4uft.", "бежит", "сидит", "犬が走る", "猫が寝る", "🐶", "🐱"]
    assert len({sheet_of(text) for text in texts}) == len(texts)
    assert sheet_of("la\u0308uft") == sheet_of("läuft"), "composed"
