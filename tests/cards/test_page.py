"""What `twinset look` shows: the pairs, what differs between them, and never a stranger's script."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cards.contact_sheet import contact_sheet
from cards.describe import withdraw
from cards.page import write_look
from cards.word_diff import mark_difference
from manifests.errors import WrongUse
from shards.read import read_spread


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.marked: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.tags and self.tags[-1] == "mark":
            self.marked.append(data)


def test_only_words_that_differ_are_marked() -> None:
    marked0, marked1 = mark_difference("A man holds the cup.", "a man is holding the cup")
    assert [word for word, differs in marked0 if differs] == ["holds"]
    assert [word for word, differs in marked1 if differs] == ["is", "holding"]
    assert [word for word, _ in marked0] == ["A", "man", "holds", "the", "cup."]
    assert mark_difference("", "") == ([], [])


def test_the_page_holds_all_and_runs_nothing(small_dataset: Any) -> None:
    written = write_look(small_dataset.store, ["eq-ag", "eq-gebc"])
    assert written == ["eq-ag/_meta/look.png", "eq-gebc/_meta/look.png", "look-eq-ag-eq-gebc.html"]
    content = (small_dataset.root / written[-1]).read_text("utf-8")
    page = _Page()
    page.feed(content)
    assert "script" not in page.tags and not re.search(r"\son\w+=", content)
    assert "<script>alert('twin')</script>" in page.text and "红色" in page.text
    images = [source for source in page.sources if source.startswith("data:image/jpeg;base64,")]
    assert len(images) == 2 * 2 * 8
    assert all(source.startswith(("data:", "#")) for source in page.sources), "the page loads nothing from elsewhere"
    assert {"red", "green"} <= set(page.marked)
    assert "missing-media" in page.text and "Charades" in page.text and "Kinetics" in page.text


def test_the_contact_sheet_shows_the_pictures(small_dataset: Any) -> None:
    path = small_dataset.root / write_look(small_dataset.store, ["eq-ag"], 5)[0]
    content = path.read_bytes()
    sheet = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)
    assert sheet.shape[1] > 1500 and 500 < sheet.shape[0] < 1500
    for colour in ((255, 0, 0), (0, 128, 0), (0, 0, 255)):
        assert (np.abs(sheet - colour).max(axis=2) < 12).sum() > 1000, "the discs can be seen"
    write_look(small_dataset.store, ["eq-ag"], 5)
    assert path.read_bytes() == content


def test_only_the_whole_look_takes_the_datasets_own_names(small_dataset: Any) -> None:
    subsets = ["eq-ag", "eq-gebc", "eq-youcook2"]
    assert write_look(small_dataset.store, subsets)[-1] == "look.html"
    before = (small_dataset.root / "eq-ag/_meta/look.png").read_bytes()
    page = (small_dataset.root / "look.html").read_bytes()
    sheets = [f"{subset}/_meta/look-2.png" for subset in subsets]
    assert write_look(small_dataset.store, subsets, 2) == [*sheets, "look-2.html"]
    assert write_look(small_dataset.store, ["eq-ag"], 2) == ["eq-ag/_meta/look-2.png", "look-2-eq-ag.html"]
    assert (small_dataset.root / "eq-ag/_meta/look.png").read_bytes() == before
    assert (small_dataset.root / "look.html").read_bytes() == page
    withdraw(small_dataset.store, "eq-ag")
    assert not list((small_dataset.root / "eq-ag/_meta").glob("look*"))


def test_captions_that_fit_nowhere_do_not_break_the_sheet(small_dataset: Any) -> None:
    pair = read_spread(small_dataset.store, "eq-ag", 1)[0]
    odd = ("x" * 500, "", "\u202eabc\x00\ud800", "emoji 👩‍🍳 and עברית", "a\nb\tc")
    pairs = [replace(pair, caption0=caption, caption1=odd[0]) for caption in odd]
    assert Image.open(io.BytesIO(contact_sheet(pairs, "odd", ""))).size[0] > 1500


def test_an_empty_subset_can_be_looked_at(small_dataset: Any) -> None:
    for receipt in small_dataset.receipts["eq-ag"]:
        small_dataset.store.remove(f"eq-ag/_meta/receipts/{receipt.shard:05d}.json")
    assert "not made yet" in (small_dataset.root / write_look(small_dataset.store, ["eq-ag"])[-1]).read_text("utf-8")
    with pytest.raises(WrongUse, match="eq-sd"):
        write_look(small_dataset.store, ["eq-sd"])
