"""Estimates: whose shards they are from, and what they come to.

Annotations of which nothing can be used stop the plan, whatever source reads them.
pyarrow's threads abort some interpreters at exit: nothing here that reads Parquet may start one.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.finalise import disagreeing
from twinset.stages.job import Job
from twinset.stages.overview import plan_states
from twinset.stages.run_here import build_here

SCENES = [("a", grey, grey + 9) for grey in range(12)] + [("gone", 1, 2)]


def recipe(greys: Any, count: int | None = None, **settings: Any) -> Recipe:
    subset = greys("eq-x", [(f"{video}", *greys_) for video, *greys_ in SCENES], 1)
    return recipe_of({"eq-x": {**subset, "count": count}}, **settings)


def logged(out: Path, each: float, start: float, **more: Any) -> None:
    """Have the logs say that a candidate took so many seconds, and the first shard more."""
    for number, log in enumerate(sorted((out / "eq-x/_meta/log").glob("0*.json"))):
        receipt = json.loads((out / f"eq-x/_meta/receipts/{log.name}").read_bytes())
        took = each * receipt["planned"] + (0 if number else start)
        log.write_text(json.dumps({"gpu": False, "seconds": took} | more))


@pytest.fixture
def scattered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scene is a video of its own, so that there are as many shards."""
    monkeypatch.setattr("tests.stages.test_costs.SCENES", [(v, n, n + 9) for n, v in enumerate("abcdef")])


def estimate(recipe: Recipe, out: Path, write: bool = True, like: Path | None = None) -> Any:
    found = plan_states(Job(recipe, Store(str(out))), write, Store(str(like)) if like else None)
    return found["subsets"]["eq-x"]["estimate"]


@pytest.mark.usefixtures("scattered", "no_cards")
def test_the_first_shards_of_a_build_tell_what_all_of_it_takes(greys: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert estimate(recipe(greys, 3), out) is None  # nothing tells it
    build_here(recipe(greys, 3), str(out), 1)
    logged(out, 2.0, 5.0, answers=2, prompt_tokens=10, completion_tokens=4)
    found = estimate(recipe(greys, 6), out)
    assert (found["candidates"], found["shards"], found["samples"], found["gpu"]) == (6, 6, 6, False)
    assert found["seconds"] == 12
    assert (found["answers"], found["prompt_tokens"], found["completion_tokens"]) == (12, 60, 24)
    assert found["from"] == f"3 candidates in {out}" and found["cost"] is None
    with pytest.MonkeyPatch.context() as patched:
        engine = SimpleNamespace(cost=lambda spent: spent.prompt_tokens / 4)
        patched.setattr("twinset.stages.costs.metered_engine", lambda source: engine)
        assert estimate(recipe(greys, 6), out)["cost"] == 15


@pytest.mark.usefixtures("scattered", "no_cards")
def test_a_trial_tells_it_for_another_dataset_and_settings_that_differ_are_named(greys: Any, tmp_path: Path) -> None:
    trial = tmp_path / "trial"
    build_here(recipe(greys, 3), str(trial), 1)
    logged(trial, 2.0, 0.0, gpu=True)
    found = estimate(recipe(greys), tmp_path / "none", write=False, like=trial)
    assert found["gpu"] and found["seconds"] == 12 and found["from"] == f"3 candidates in {trial}"
    other = recipe(greys)
    subset = other["eq-x"].model_copy(update={"source": other["eq-x"].source.model_copy(update={"note": "new"})})
    other = other.model_copy(update={"subsets": {"eq-x": subset}})
    assert estimate(other, tmp_path / "none", False, trial)["from"].endswith("with other settings (note)")
    with pytest.raises(WrongUse, match="holds no dataset"):
        estimate(other, tmp_path / "none", False, tmp_path / "nowhere")


@pytest.mark.usefixtures("no_cards")
def test_logs_that_say_nothing_are_no_reason_to_fail(greys: Any, tmp_path: Path) -> None:
    out, asked = tmp_path / "out", recipe(greys)
    build_here(asked, str(out), 1)
    for number, log in enumerate((out / "eq-x/_meta/log").glob("*.json")):
        log.write_text("[" if number else '{"seconds": "many"}')
    assert estimate(asked, out) is None


@pytest.mark.usefixtures("no_cards")
@pytest.mark.parametrize("value", [-2.0, float("nan"), float("inf")])
def test_a_time_that_is_none_ends_no_build(greys: Any, value: float, tmp_path: Path) -> None:
    out, asked = tmp_path / "out", recipe(greys)
    build_here(asked, str(out), 1)
    logged(out, 2.0, 0.0, seconds=value)
    assert estimate(asked, out) is None
    (out / "eq-x/_meta/index.json").unlink()
    build_here(asked, str(out), 1)


@pytest.mark.usefixtures("no_cards")
@pytest.mark.parametrize("count", [-3, 10**400])
def test_a_count_that_is_none_counts_as_nothing(greys: Any, count: int, tmp_path: Path) -> None:
    out, asked = tmp_path / "out", recipe(greys)
    build_here(asked, str(out), 1)
    logged(out, 2.0, 0.0, answers=count)
    assert estimate(asked, out)["answers"] == 0


VIDEO = {"duration": 8, "annotations": [{"segment": [0, 4], "id": 0}, {"segment": [4, 8], "id": 1}]}
BOUNDARY = {"boundary_id": "v_0", "timestamp": 1.0, "subject": "A dog", "status_before": "sits", "status_after": "/0"}
ONE_FRAME = {"frame": "A.mp4/000001.png", "objects": []}
FILES: dict[str, tuple[str, str]] = {
    "youcook2": (
        json.dumps({"database": {"v": VIDEO}}),
        r"2 left out, such as .*: segments without .* a caption of words",
    ),
    "gebc": (json.dumps({"v": [BOUNDARY]}), r"0 left out"),
    "action-genome": (json.dumps(ONE_FRAME), r"0 left out"),
    "image-pairs": (json.dumps([1]), r"1 left out, such as some\.json record 1: "),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_which_nothing_can_be_used_is_refused(tmp_path: Path, kind: str) -> None:
    content, problem = FILES[kind]
    (tmp_path / "some.json").write_text(content)
    (tmp_path / "media").mkdir()
    source = {
        "kind": kind,
        "annotations": str(tmp_path / "some.json"),
        "media": str(tmp_path / "media"),
        "licence": "MIT",
    }
    recipe = recipe_of({"eq-x": {"source": source}})
    for out in (None, str(tmp_path / "out")):
        with pytest.raises(WrongUse, match=rf"some\.json: nothing in it can be used \({problem}.*the source of eq-x"):
            twinset.plan(recipe, out)


def test_a_file_of_malformed_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.jsonl").write_text('{"frame": 3}\n')
    source = {"kind": "action-genome", "annotations": str(tmp_path / "some.jsonl"), "media": str(tmp_path)}
    with pytest.raises(WrongUse, match=r"1 left out, such as some\.jsonl line 1: records that are not a frame"):
        twinset.plan(recipe_of({"eq-x": {"source": source}}))


def test_drawn_annotations_alone_count(greys: Any, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"nothing in it can be used \(2 left out, such as scene 0: .*; correct it, or"):
        twinset.plan(recipe_of({"eq-x": greys("eq-x", [[1], [2]], 3)}))
    none_asked = {**greys("eq-x", [["a", 0, 100]], 3), "count": 1}
    assert twinset.plan(recipe_of({"eq-x": none_asked}))["subsets"]["eq-x"]["planned"] == 1


READS_ALL = """
import os, sys, time
from twinset.contracts.plan import read_slice
from twinset.shards.records import read_planned
from twinset.shards.rows import read_rows
from twinset.shards.storage.store import Store
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.index import summarise, write_index
from twinset.stages.status import state_of
from tests.stages.drawn_sources import Scene

def threads():
    return len(os.listdir("/proc/self/task"))

store = Store(sys.argv[1])
# Writing, which starts none of the threads in question, loads what else there is.
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"one": [1]}), sys.argv[1] + "/warm.parquet")
before = threads()
def unchanged(what):
    for _ in range(50):  # a joined thread is still listed for a moment
        if threads() == before:
            return
        time.sleep(0.1)
    raise AssertionError(what)

assert read_planned(store, "eq-x")
unchanged("read_planned")
with store.open("eq-x/_meta/plan/00000.parquet") as stream:
    assert read_slice(stream, 0, Scene)
unchanged("read_slice")
with store.open("eq-x/_meta/rows/00000.parquet") as stream:
    assert read_rows(stream)
unchanged("read_rows")
state = state_of(store, "eq-x")
assert len(state.done) == 2
unchanged("state_of")
write_index(store, state, "pair")
unchanged("write_index")
drop_duplicates(store, {"eq-x": state})
unchanged("drop_duplicates")
assert summarise(store, state).kept == 2
unchanged("summarise")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_nothing_that_reads_parquet_leaves_a_thread(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", [("a", 1, 2), ("b", 3, 4)], 1)
    build.make_all()
    disagreeing(build.store, build.state())  # the ledger is read too
    done = subprocess.run(
        [sys.executable, "-c", READS_ALL, build.store.root],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
