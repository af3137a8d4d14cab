"""The small files that the stages of golden.yaml read, beside the demo's samples."""

import json
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image

from twinset_demo import MINIATURE

# What a shard of any kind must carry unchanged: markup, accents, letters of other scripts.
HOSTILE = "the disc is <script>alert('twin')</script> & rouge écarlate 红色"
BOX = (40, 60, 48, 48)  # left, top, width, height of the car in a photo, pixels
NEGATIVES = (
    ("A red car on a road.", "A green car on a road.", "replace", "att"),
    ("A red car on a road.", "A blue car on a road.", "replace", "att"),
    ("A red car on a road.", "A red bus on a road.", "replace", "obj"),
    ("A car on a road.", "A red car on a road.", "add", "att"),
    ("A red car in the snow.", "A green car in the snow.", "replace", "att"),
    ("A red car in a park.", "A red dog in a park.", "replace", "obj"),
)
PAIRS = (
    ("A red car on a road.", "A green car on a road.", "colour"),
    ("A dog in a park.", "A cat in a park.", "object"),
    ("A park with a dog.", "A park without a dog.", "presence"),
    (HOSTILE, "the disc is blue", "colour"),
)

SUBJECTS = ("dog", "cat", "horse")
DEEDS = (("holding", "ball"), ("chewing", "stick"), ("carrying", "flower"), ("watching", "car"))
RATINGS = {**dict.fromkeys(("dog", "cat", "horse", "ball", "flower", "car"), 5.0), "stick": 4.9, "idea": 1.6}


def captioned(folder: Path) -> None:
    """Write captions of who does what with which thing, two pictures of each, and ratings of concreteness."""
    (folder / "images").mkdir()
    lines = []
    for number, (subject, (deed, object_)) in enumerate([*product(SUBJECTS, DEEDS)] * 2):
        fields = {"id": f"c{number}", "image_id": f"i{number}", "caption": f"A {subject} is {deed} a {object_}."}
        lines.append(json.dumps({**fields, "image": f"{number:04d}.png"}) + "\n")
        Image.new("RGB", (24, 16), (number * 7, number, 0)).save(folder / f"images/{number:04d}.png")
    (folder / "captions.jsonl").write_text("".join(lines))
    rated = [f"{word}\t0\t{mean}\n" for word, mean in RATINGS.items()]
    (folder / "ratings.txt").write_text("".join(["Word\tBigram\tConc.M\n", *rated]))


def write(folder: Path) -> None:
    """Write captions with ratings and images, negative captions with photos and instances, and pairs."""
    captioned(folder)
    with tarfile.open(MINIATURE / "stills/images/stills.tar") as tar:  # digests name the photographs by themselves
        tar.extractall(folder / "stills")
    (folder / "photos").mkdir()
    rows = []
    for number, words in enumerate(NEGATIVES):
        photo(number).save(folder / f"photos/{number}.png")
        names = ("caption", "negative_caption", "type", "subtype")
        rows.append({"image": f"{number}.png", **dict(zip(names, words, strict=True))})
    (folder / "negatives.json").write_text(json.dumps(rows))
    captions = [{"id": n, "image_id": n, "image": f"{n}.png", "caption": row["caption"]} for n, row in enumerate(rows)]
    (folder / "photos.jsonl").write_text("".join(json.dumps(caption) + "\n" for caption in captions))
    instances = {
        "images": [{"id": number, "file_name": f"{number}.png"} for number in range(len(NEGATIVES))],
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [{"image_id": number, "category_id": 1, "bbox": BOX} for number in range(len(NEGATIVES))],
    }
    (folder / "instances.json").write_text(json.dumps(instances))
    segments = "-Salad0mini,0.3,1.8,slice it\n-Salad0mini,2.1,3.6,cut it\n-Salad0mini,3.9,5.4,put it into a bowl\n"
    (folder / "segments.csv").write_text("video,start,end,caption\n" + segments)
    pairs = []
    for number, (caption0, caption1, change) in enumerate(PAIRS):
        for side in (0, 1):
            photo(10 + number, (20, 160 * side, 40)).save(folder / f"photos/pair{number}-{side}.png")
        images = {f"image{side}": f"pair{number}-{side}.png" for side in (0, 1)}
        pairs.append({"id": number, **images, "caption0": caption0, "caption1": caption1, "change": change})
    (folder / "pairs.json").write_text(json.dumps(pairs))


def photo(number: int, colour: tuple[int, int, int] = (200, 40, 30)) -> Image.Image:
    """Noise in even squares of eight pixels, as a textured scene, with a box of one colour."""
    squares = np.random.default_rng(number).integers(60, 190, (32, 40, 3), dtype=np.uint8)
    pixels = squares.repeat(8, axis=0).repeat(8, axis=1)
    left, top, width, height = BOX
    pixels[top : top + height, left : left + width] = colour
    return Image.fromarray(pixels)
