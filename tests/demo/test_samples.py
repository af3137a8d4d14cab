"""What the demo ships: models by their names, and sample data whose annotations name files that are there."""

import csv
import json
import tarfile
import tomllib
from glob import glob
from pathlib import Path

import pytest

from twinset.generators.prompt_to_prompt.vocabulary import load_captions, vocabulary_file
from twinset.generators.video import safe_pickle
from twinset.models.files import ModelFolder, local_folder
from twinset_demo import HERE, MINIATURE, PROCEDURAL
from twinset_demo.models import SMALL, SMALL_CLIP


@pytest.mark.parametrize(("name", "model"), [("small", SMALL), ("small-clip", SMALL_CLIP)])
def test_a_model_is_found_by_its_name(name: str, model: ModelFolder) -> None:
    folder = local_folder(name, "")
    assert (folder / "README.md").is_file() and folder == model.folder


def test_the_small_model_knows_all_words_of_its_vocabulary() -> None:
    known = set((SMALL.folder / "tokenizer/tokenizer.json").read_text("utf-8").replace('"', " ").split())
    rows = load_captions(vocabulary_file("small-world")).rows
    words = {word for row in rows for phrases in row.words.values() for phrase in phrases for word in phrase.split()}
    assert len(words) > 30
    assert {f"{word}</w>" for word in words} <= known


LARGEST = 25_000_000  # bytes of all samples


def names(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir()}


def test_the_samples_are_small_and_packed() -> None:
    assert sum(path.stat().st_size for path in (HERE / "samples").rglob("*") if path.is_file()) < LARGEST
    packed = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    patterns = packed["twinset_demo"]
    found = {
        path for pattern in patterns for path in map(Path, glob(str(HERE / pattern), recursive=True)) if path.is_file()
    }
    found |= {path for path in HERE.rglob("*") if path.suffix in (".py", ".pyc")}
    assert {path for path in HERE.rglob("*") if path.is_file()} == found


def test_videos_of_all_annotations_are_there() -> None:
    frames = safe_pickle.load(MINIATURE / "action_genome/annotations.pkl")
    assert {name.partition(".")[0] for name in frames} == names(MINIATURE / "action_genome/videos")
    events = json.loads((MINIATURE / "gebc/annotations.json").read_bytes())
    assert {*events} == names(MINIATURE / "gebc/videos")
    steps = json.loads((MINIATURE / "youcook2/annotations.json").read_bytes())["database"]
    assert {*steps} == names(MINIATURE / "youcook2/videos")


def test_photographs_of_all_annotations_are_there() -> None:
    stills = MINIATURE / "stills"
    with tarfile.open(stills / "images/stills.tar") as tar:
        photographs = {*tar.getnames()}
    captions, scenes = (json.loads((stills / name).read_bytes()) for name in ("captions.json", "panoptic.json"))
    for annotations in (captions, scenes):
        assert {image["file_name"] for image in annotations["images"]} == photographs
    instances = json.loads((stills / "vaw.json").read_bytes())
    assert {f"{instance['image_id']}.jpg" for instance in instances} <= photographs
    with (MINIATURE / "small_world/negatives.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["filename"].removesuffix(".png") for row in rows} == names(MINIATURE / "small_world/photos")


def test_archives_of_all_assets_are_there() -> None:
    assets = json.loads((PROCEDURAL / "manifest.json").read_bytes())["assets"]
    assert {f"{name}.tar.gz" for name in assets} == {path.name for path in PROCEDURAL.glob("*.tar.gz")}
    assert {asset["license"] for asset in assets.values()} == {"CC0-1.0"}
