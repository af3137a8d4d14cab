"""``twinset review`` of a human baseline: its options, and files that name images which the page serves."""

import csv
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import twinset
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing
from twinset.review.access import Access
from twinset.review.app import make_app
from twinset.review.opening import open_desk, open_links


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT of pairs that people are asked about."""
    folder = tmp_path_factory.mktemp("asked")
    out = build_pairs(folder)
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe_of(folder, protocol="bivlc"), str(out), only=["human-baseline"])
    return out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--images-at", "https://h"], "--out"),
        (["--images-at", "ftp://h", "--out", "x.csv"], "--images-at ftp://h"),
        (["--images-at", "https://h/path", "--out", "x.csv"], "--images-at https://h/path"),
        (["--prolific", "a b"], "completion code"),
    ],
)
def test_wrong_options_are_refused(
    asked: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(asked), *options]) == 2
    assert words in capsys.readouterr().err


def test_the_page_serves_what_an_exported_file_names(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tasks.csv"
    assert main(["review", str(asked), "--out", str(file), "--images-at", "https://ask.example.org"]) == 0
    capsys.readouterr()
    desk = open_desk(str(asked))
    assert desk is not None
    app = make_app(desk, Access(desk.tasks.secret, ["anna"], links=open_links(str(asked))), "asked")
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    named = [row[name] for row in rows for name in ("image0", "image1") if row[name]]
    assert len(named) == 2 * len(rows) // 2 + len(rows) // 2
    client = TestClient(app, base_url="https://ask.example.org")
    assert {client.get(address).status_code for address in named} == {200}
    desk.store.close()
