"""Captions of the tests' own whose triplets have pictures: who does what with which thing, each in a picture or two."""

import io
import json
import tarfile
from itertools import product
from pathlib import Path

import yaml
from PIL import Image

SUBJECTS = ("dog", "cat", "horse")
DEEDS = (("holding", "ball"), ("chewing", "stick"), ("carrying", "flower"), ("watching", "car"))
RATINGS = {**dict.fromkeys(("dog", "cat", "horse", "ball", "flower", "car"), 5.0), "stick": 4.9, "idea": 1.6}
SCENES = list(product(SUBJECTS, DEEDS)) * 2


def write_inputs(folder: Path, repeats: int = 1) -> Path:
    """Captions, ratings and pictures below a folder, so many of each of `SCENES`, and a recipe; returns the recipe."""
    lines = []
    for number, (subject, (deed, thing)) in enumerate(SCENES * repeats):
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


def into_tars(images: Path) -> None:
    """Put the pictures of a folder into two tars in it, as img2dataset would."""
    files = sorted(images.glob("*.png"))
    for number in range(2):
        with tarfile.open(images / f"{number:05d}.tar", "w") as tar:
            for file in files[number::2]:
                tar.add(file, file.name)
                file.unlink()
