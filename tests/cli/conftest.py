"""Captioned pictures that a test draws, and a dataset of them, built in this process in a second."""

import hashlib
import shutil
from pathlib import Path

import pytest

import twinset
from tests.made_recipe import write_recipe
from tests.stages.conftest import no_cards
from twinset.cli.main import main

__all__ = ["no_cards"]
PUBLISHED = ('authors=["Doe, Jane", The shades group]', 'citation="@misc{shades, title = {Shades}}"', "date=2026-11-26")


def run(*arguments: object) -> int:
    return main(["publish", *map(str, arguments)])


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether files are those that their checksums name, which are all but those of the Hub itself."""
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    return sums == {
        path: hashlib.sha256(content).hexdigest()
        for path, content in files.items()
        if path not in ("SHA256SUMS", ".gitattributes")
    }


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says, builds run here."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture(scope="session")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe that is built beside it, in ``out``, with all that a published dataset needs."""
    recipe = write_recipe(tmp_path_factory.mktemp("shades"))
    twinset.build(str(recipe), recipe.parent / "out", settings=PUBLISHED)
    return recipe


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of six pairs of one-coloured pictures in three shards, with its inputs beside it."""
    return write_recipe(tmp_path)


@pytest.fixture
def out(shades: Path, tmp_path: Path) -> Path:
    """A copy of what is built of that recipe."""
    return Path(shutil.copytree(shades.parent / "out", tmp_path / "out"))
