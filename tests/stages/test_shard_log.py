"""Sums over the shards of a run, as a file that monitoring reads."""

import errno
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import twinset
from tests.stages.conftest import recipe_of
from twinset.manifests.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages import run_here
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 200, 8), ("f", 9, 7)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1, filters=["test-dark"])})


def last_run(out: Path) -> dict[tuple[str, ...], float]:
    """The sums in the newest file, by name and the values of labels; raises where it is not OpenMetrics."""
    newest = max((out / "_runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert newest.suffix == ".prom"
    families = list(text_string_to_metric_families(newest.read_text()))
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_a_run_leaves_its_sums_and_one_with_nothing_to_do_leaves_none(
    recipe: Any, trouble: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_here, "_delay", lambda attempt: 0.0)
    trouble("a", f"errno {errno.EIO} 2")
    trouble("b", f"errno {errno.ENOSPC} 9")
    with pytest.raises(BuildFailed, match="1 of 5 shards failed"):
        build_here(recipe, str(tmp_path / "out"))
    found = last_run(tmp_path / "out")
    assert found["twinset_shards_total", "eq-x", "made"] == 4 and found["twinset_shards_total", "eq-x", "failed"] == 1
    assert found["twinset_samples_total", "eq-x", "kept"] == 3
    assert found["twinset_samples_total", "eq-x", "rejected"] == 1
    assert found["twinset_retries_total", "eq-x"] == 2 and found["twinset_shard_seconds_total", "eq-x"] > 0
    files = [*(tmp_path / "out/eq-x").glob("test/*.tar"), *(tmp_path / "out/eq-x/_meta/rows").iterdir()]
    assert found["twinset_written_bytes_total", "eq-x"] == sum(file.stat().st_size for file in files)
    trouble("b")
    for _ in range(2):
        build_here(recipe, str(tmp_path / "out"))
    assert len([*(tmp_path / "out/_runs").iterdir()]) == 2
    assert last_run(tmp_path / "out")["twinset_samples_total", "eq-x", "kept"] == 1


def test_a_part_leaves_its_sums_and_they_are_part_of_nothing(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    for step in ({"plan_only": True}, {"part": "1/2"}, {"shards": "0-1"}, {"finish": True}):
        twinset.build(recipe, tmp_path / "parts", stage="eq-x" if "finish" not in step else None, **step)
    assert len([*(tmp_path / "parts/_runs").iterdir()]) == 2
    build_here(recipe, str(tmp_path / "whole"))
    assert files_below(tmp_path / "parts") == files_below(tmp_path / "whole")
    assert {*twinset.status(tmp_path / "parts")["subsets"]} == {"eq-x"}


def test_a_run_in_a_bucket_leaves_them_there(recipe: Any, tmp_path: Path) -> None:
    store = Store(f"memory://{tmp_path.name}/out")
    build_here(recipe, store.root)
    (name,) = store.names("_runs")
    assert store.read(f"_runs/{name}").endswith(b"# EOF\n")


def test_sums_that_cannot_be_written_end_no_build(recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Store.write

    def full(store: Store, path: str, content: bytes) -> None:
        if path.startswith("_runs/"):
            raise OSError(errno.ENOSPC, "no space left")
        write(store, path, content)

    monkeypatch.setattr(Store, "write", full)
    assert build_here(recipe, str(tmp_path / "out"))["subsets"]["eq-x"]["kept"] == 4
    assert not (tmp_path / "out/_runs").exists()
