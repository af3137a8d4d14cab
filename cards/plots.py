"""Histograms of a subset as a PNG, drawn without a plotting library."""

from __future__ import annotations

import io
from collections.abc import Mapping

from PIL import Image, ImageDraw, ImageFont

from cards.lettering import fitted, plain
from cards.sheet import GREY, INK, PAPER
from cards.summary import AnyStatistics, Statistics, TripletStatistics

WIDTH, HEIGHT, MARGIN, GAP = 560, 300, 44, 60
MOST_BARS = 40
MOST_NAMES, NAME = 13, 200  # names in a ranking, and pixels that each has
BAR, RULE = "#3c7d5a", "#dcd8ce"


def histograms(numbers: AnyStatistics) -> bytes:
    """A PNG: of pairs, captions by number of words and groups (videos or scenes) by number of pairs; of triplets and
    templates, conditions by number of words and the most frequent ones, of templates also the types of attributes."""
    if isinstance(numbers, Statistics):
        draw = _Panels(2)
        draw.histogram("captions by number of words", numbers.caption_words)
        draw.histogram("groups (videos or scenes) by number of pairs", numbers.group_pairs)
        return draw.png()
    types = {} if isinstance(numbers, TripletStatistics) else numbers.types
    draw = _Panels(3 if types else 2)
    draw.histogram("conditions by number of words", numbers.condition_words)
    draw.ranking("most frequent conditions", numbers.frequent)
    if types:
        draw.ranking(f"types of attributes (of {numbers.sampled:,} templates)", types)
    return draw.png()


def binned(counts: Mapping[int, int], most: int = MOST_BARS) -> list[tuple[int, int, int]]:
    """(first, last, count) of at most ``most`` bins of equal width that cover all keys."""
    if not counts:
        return []
    low, high = min(counts), max(counts)
    width = -(-(high - low + 1) // most)
    bins = [0] * (-(-(high - low + 1) // width))
    for value, count in counts.items():
        bins[(value - low) // width] += count
    return [(low + k * width, low + (k + 1) * width - 1, count) for k, count in enumerate(bins)]


class _Panels:
    """Panels side by side, drawn one after the other."""

    def __init__(self, count: int) -> None:
        width = count * WIDTH + (count - 1) * GAP + 2 * MARGIN
        self._sheet = Image.new("RGB", (width, HEIGHT + 2 * MARGIN), PAPER)
        self._draw = ImageDraw.Draw(self._sheet)
        self._left = MARGIN

    def png(self) -> bytes:
        """The finished picture."""
        stream = io.BytesIO()
        self._sheet.save(stream, "PNG", optimize=True)
        return stream.getvalue()

    def ranking(self, title: str, counts: Mapping[str, int]) -> None:
        """A bar for each name, in order, the first as long as there is room; at most `MOST_NAMES`."""
        draw, left, small = self._draw, self._begin(title), ImageFont.load_default(13)
        if not counts:
            draw.text((left, MARGIN + 44), "nothing kept", GREY, small)
            return
        named = list(counts.items())[:MOST_NAMES]
        room, start = WIDTH - NAME - 70, left + NAME + 10
        for place, (name, count) in enumerate(named):
            y = MARGIN + 34 + place * 21
            draw.text((left + NAME, y), fitted(plain(name), small, NAME), INK, small, anchor="ra")
            length = max(1, round(room * count / named[0][1]))
            draw.rectangle((start, y + 1, start + length, y + 13), BAR)
            draw.text((start + length + 6, y), f"{count:,}", GREY, small)

    def histogram(self, title: str, counts: Mapping[int, int]) -> None:
        """A bar for each bin of values (value -> how often)."""
        draw, left, small = self._draw, self._begin(title), ImageFont.load_default(13)
        base, top = MARGIN + HEIGHT - 20, MARGIN + 44
        draw.line((left, base, left + WIDTH, base), RULE, 1)
        bins = binned(counts)
        if not bins:
            draw.text((left, top), "nothing kept", GREY, small)
            return
        highest = max(count for _, _, count in bins)
        step = min(WIDTH / len(bins), 48)
        labels = [str(first) if first == last else f"{first}-{last}" for first, last, _ in bins]
        every = max(1, round(max(44, small.getlength(labels[-1]) + 12) / step))
        for place, (label, (_, _, count)) in enumerate(zip(labels, bins, strict=True)):
            start = left + place * step
            height = round((base - top) * count / highest)
            if count:
                draw.rectangle((start + 1, base - max(height, 1), start + step - 2, base - 1), BAR)
            if place % every == 0:
                draw.text((start + step / 2, base + 5), label, GREY, small, anchor="ma")
            if count == highest:
                draw.text((start + step / 2, base - height - 4), f"{count:,}", GREY, small, anchor="mb")

    def _begin(self, title: str) -> int:
        """The left side of the next panel, with its title."""
        left = self._left
        self._left += WIDTH + GAP
        self._draw.text((left, MARGIN - 12), title, INK, ImageFont.load_default(17))
        return left
