"""Captions of the tests' own whose triplets have pictures: who does what with which thing, each in a picture or two."""

import io
import json
from itertools import product
from pathlib import Path

import yaml
from PIL import Image

SUBJECTS = ("dog", "cat", "horse")
DEEDS = (("holding", "ball"), ("chewing", "stick"), ("carrying", "flower"), ("watching", "car"))
RATINGS = {**dict.fromkeys(("dog", "cat", "horse", "ball", "flower", "car"), 5.0), "stick": 4.9, "idea": 1.6}
SCENES = list(product(SUBJECTS, DEEDS)) * 2


def write_inputs(folder: Path) -> Path:
    """Captions, ratings and pictures of `SCENES` below a folder, and a recipe; returns the recipe."""
    lines = []
    for number, (subject, (deed, thing)) in enumerate(SCENES):
        fields = {"id": f"c{number}", "image_id": f"i{number}", "caption": f"A {subject} is {deed} a {thing}."}
        lines.append(json.dumps({**fields, "image": f"{number:04d}.png"}))
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n")
    rated = [f"{word}\t0\t{mean}" for word, mean in RATINGS.items()]
    (folder / "ratings.txt").write_text("\n".join(["Word\tBigram\tConc.M", *rated]) + "\n")
    (folder / "images").mkdir()
    for number in range(len(lines)):
        (folder / "images" / f"{number:04d}.png").write_bytes(picture(number))
    graphs = {"source": {"kind": "scene-graphs", "captions": "captions.jsonl"}, "shard_size": 16}
    source = {
        "kind": "genecis-triplets",
        "graphs": "scene-graphs",
        "concreteness": "ratings.txt",
        "images": "images",
        "licence": "CC0-1.0",
    }
    subset = {"source": source, "count": 40, "shard_size": 8, "split": "train"}
    recipe = {"name": "captioned", "stages": {"scene-graphs": graphs}, "subsets": {"triplets": subset}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder / "recipe.yaml"


def picture(number: int) -> bytes:
    """A picture unlike all others."""
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (number * 7 % 256, number % 256, number // 256)).save(stream, "PNG")
    return stream.getvalue()
