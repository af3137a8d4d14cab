"""Negative captions that the small model can draw, and painted pictures of the captions: SugarCrepe's task, small."""

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from twinset_demo.small_diffusion.painter import paint
from twinset_demo.small_diffusion.scenes import (
    COLOURS,
    OBJECTS,
    POSITIONS,
    TIMES,
    normalised,
    read_caption,
    sample_scene,
)

#: Caption, negative caption, type and subtype, as SugarCrepe has them; a count is an attribute there.
NEGATIVES = (
    ("a photo of a red ball on the grass", "a photo of a blue ball on the grass", "replace", "att"),
    ("a photo of a yellow star", "a photo of a yellow heart", "replace", "obj"),
    ("a photo of two green cars", "a photo of three green cars", "replace", "att"),
    ("a photo of a black house in the snow", "a photo of a black house in the desert", "replace", "obj"),
    ("a photo of a purple tree on the left", "a photo of a purple tree on the right", "replace", "rel"),
    ("a photo of a blue fish in the desert", "a photo of a blue fish in the desert at night", "add", "att"),
)
VALUES = {"colour": tuple(COLOURS), "object": tuple(OBJECTS), "position": POSITIONS, "time": TIMES}
COLUMNS = ("filename", "caption", "negative_caption", "type", "subtype")


#: Rows of ``more_negatives.csv``, and what is done to each caption in turn: a field of `Scene`, and how it is called.
MORE = 120
CHANGES = (
    ("colour", "replace", "att"),
    ("object", "replace", "obj"),
    ("position", "replace", "rel"),
    ("time", "add", "att"),
)


def more_negatives() -> list[tuple[str, str, str, str]]:
    """Rows as those of `NEGATIVES`: of random scenes whose one field is replaced, or that a time is added to."""
    rows = list[tuple[str, str, str, str]]()
    random = np.random.default_rng(0)
    while len(rows) < MORE:
        field, type, subtype = CHANGES[len(rows) % len(CHANGES)]
        scene = replace(sample_scene(random), style="photo")
        if field == "time":
            scene = replace(scene, time="")
        values = [one for one in VALUES[field] if one not in ("", getattr(scene, field))]
        other = replace(scene, **{field: str(random.choice(values))})
        said = field == "time" or getattr(scene, field)
        row = (scene.caption(), other.caption(), type, subtype)
        if said and normalised(other) == other and row not in rows:
            rows.append(row)
    return rows


def write_small_world(folder: Path) -> None:
    """Write ``negatives.csv``, ``more_negatives.csv`` and ``photos/NNN.png``, 64 × 64, into an existing folder."""
    (folder / "photos").mkdir()
    numbers = itertools.count()
    for file, rows in (("negatives.csv", NEGATIVES), ("more_negatives.csv", more_negatives())):
        with (folder / file).open("w", newline="", encoding="utf-8") as stream:
            written = csv.writer(stream, lineterminator="\n")
            written.writerow(COLUMNS)
            for row, number in zip(rows, numbers, strict=False):
                name = f"{number:03d}.png"
                written.writerow((name, *row))
                pixels = paint(read_caption(row[0]), np.random.default_rng(number))
                Image.fromarray(pixels).save(folder / "photos" / name)
