"""Histograms of a subset as a PNG, drawn without a plotting library."""

from __future__ import annotations

import io
from collections.abc import Mapping

from PIL import Image, ImageDraw, ImageFont

from manifests.summary import Statistics
from shards.contact_sheet import GREY, INK, PAPER

WIDTH, HEIGHT, MARGIN, GAP = 560, 300, 44, 60
MOST_BARS = 40
BAR, RULE = "#3c7d5a", "#dcd8ce"


def histograms(numbers: Statistics) -> bytes:
    """A PNG: captions by number of words, and groups (videos or scenes) by number of pairs."""
    sheet = Image.new("RGB", (2 * WIDTH + GAP + 2 * MARGIN, HEIGHT + 2 * MARGIN), PAPER)
    draw = ImageDraw.Draw(sheet)
    _draw(draw, MARGIN, "captions by number of words", numbers.caption_words)
    _draw(draw, MARGIN + WIDTH + GAP, "groups (videos or scenes) by number of pairs", numbers.group_pairs)
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


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


def _draw(draw: ImageDraw.ImageDraw, left: int, title: str, counts: Mapping[int, int]) -> None:
    text, small = ImageFont.load_default(17), ImageFont.load_default(13)
    draw.text((left, MARGIN - 12), title, INK, text)
    base, top = MARGIN + HEIGHT - 20, MARGIN + 44
    draw.line((left, base, left + WIDTH, base), RULE, 1)
    bins = binned(counts)
    if not bins:
        draw.text((left, top), "nothing kept", GREY, small)
        return
    highest = max(count for _, _, count in bins)
    step = min(WIDTH / len(bins), 48)
    every = max(1, round(44 / step))
    for place, (first, last, count) in enumerate(bins):
        start = left + place * step
        height = round((base - top) * count / highest)
        if count:
            draw.rectangle((start + 1, base - max(height, 1), start + step - 2, base - 1), BAR)
        if place % every == 0:
            label = str(first) if first == last else f"{first}-{last}"
            draw.text((start + step / 2, base + 5), label, GREY, small, anchor="ma")
        if count == highest:
            draw.text((start + step / 2, base - height - 4), f"{count:,}", GREY, small, anchor="mb")
