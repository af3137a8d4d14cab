"""What the demo ships: models by their names, and sample data that is small and packed."""

import tomllib
from glob import glob
from pathlib import Path

import pytest

from twinset.generators.prompt_to_prompt.vocabulary import load_captions, vocabulary_file
from twinset.models.files import ModelFolder, local_folder
from twinset_demo import HERE
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


def test_the_samples_are_small_and_packed() -> None:
    assert sum(path.stat().st_size for path in (HERE / "samples").rglob("*") if path.is_file()) < LARGEST
    packed = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    patterns = packed["twinset_demo"]
    listed = {Path(path) for pattern in patterns for path in glob(str(HERE / pattern), recursive=True)}
    assert {path for path in HERE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")} <= listed
