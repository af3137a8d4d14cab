"""Negative captions that the small model can draw, and painted pictures of the captions: SugarCrepe's task, small."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from generators.builtin.small_diffusion.painter import paint
from generators.builtin.small_diffusion.scenes import read_caption

#: Caption, negative caption, type and subtype, as SugarCrepe has them; a count is an attribute there.
NEGATIVES = (
    ("a photo of a red ball on the grass", "a photo of a blue ball on the grass", "replace", "att"),
    ("a photo of a yellow star", "a photo of a yellow heart", "replace", "obj"),
    ("a photo of two green cars", "a photo of three green cars", "replace", "att"),
    ("a photo of a black house in the snow", "a photo of a black house in the desert", "replace", "obj"),
    ("a photo of a purple tree on the left", "a photo of a purple tree on the right", "replace", "rel"),
    ("a photo of a blue fish in the desert", "a photo of a blue fish in the desert at night", "add", "att"),
)
COLUMNS = ("filename", "caption", "negative_caption", "type", "subtype")


def write_small_world(folder: Path) -> None:
    """Write ``negatives.csv`` and ``photos/NNN.png``, 64 × 64, into an existing folder."""
    (folder / "photos").mkdir()
    with (folder / "negatives.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        for number, row in enumerate(NEGATIVES):
            name = f"{number:03d}.png"
            rows.writerow((name, *row))
            pixels = paint(read_caption(row[0]), np.random.default_rng(number))
            Image.fromarray(pixels).save(folder / "photos" / name)
