"""Media that are not there: a build without any stops before it makes shards, and all are listed by file."""

from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE, Scene
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed
from twinset.stages.run_here import build_here

SCENES = [("x", 1, 9), ("y", 2, 8), ("y", 3, 8), ("z", 4, 8)]


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scene, "media_names", property(lambda scene: (scene.video,)))


def test_a_build_without_any_medium_makes_nothing_and_says_where_it_looked(
    greys: Any, tmp_path: Path, media: Path
) -> None:
    out, recipe = tmp_path / "out", recipe_of({"eq-x": greys("eq-x", SCENES, 1)}, max_missing=0.01)
    with pytest.raises(
        BuildFailed, match=rf"of 3 that .* such as x, y, z, none is in {media} or .* subsets\.eq-x\.source, and run"
    ):
        build_here(recipe, str(out))
    assert not MADE
    main(["status", str(out), "--missing", str(tmp_path / "list.tsv")])
    lines = (tmp_path / "list.tsv").read_text().splitlines()
    assert lines == ["stage\tmedia\tstate\turl", *(f"eq-x\t{video}\tabsent\t" for video in "xyz")]
    (media / "y.mp4").write_bytes(b"y")  # one is enough to begin
    with pytest.raises(BuildFailed, match=r"media of 2 of 4 candidates is missing or broken: 2 files, such as x in"):
        build_here(recipe, str(out))
    (counts,) = twinset.status(out, tmp_path / "list.tsv")["subsets"].values()
    assert (counts["missing_media"], len(counts["problems"])) == (2, 1)
    assert [line.split("\t")[1] for line in (tmp_path / "list.tsv").read_text().splitlines()[1:]] == ["x", "z"]
    assert main(["status", str(out), "--missing", str(tmp_path)]) == 2
