"""The flow ``evaluate`` without a server: its task, and what it refuses before any work."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import twinset
from tests.evaluation.benchmarks.made_layouts import sugarcrepe
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.flows.models import evaluate, score_task

RUNNING = {"device": "cpu", "batch": 4, "threads": 1}


def test_a_task_scores_one_benchmark_with_one_model_and_a_retry_finds_it_cached(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "data")
    model, out, cache = f"random:{open_clip_config(tmp_path)}", str(tmp_path / "out"), str(tmp_path / "cache")
    given = ("sugarcrepe", f"sugarcrepe={tmp_path / 'data'}", model, out, ["add_att"], cache, RUNNING)
    path = Path(score_task.fn(*given))
    assert path.parent == tmp_path / "out" / "scores" / "sugarcrepe" and pq.read_table(path).num_rows == 3
    before = path.read_bytes()
    assert '"computed": 0' not in path.with_suffix(".run.json").read_text()
    assert Path(score_task.fn(*given)).read_bytes() == before
    assert path.with_suffix(".run.json").read_text() == '{"computed": 0}'


def test_a_limit_asks_the_examples_that_the_command_asks(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "data")
    model, place = f"random:{open_clip_config(tmp_path)}", f"sugarcrepe={tmp_path / 'data'}"
    given = (place, model, str(tmp_path / "out"), [], str(tmp_path / "cache"), RUNNING)
    path = Path(score_task.fn("sugarcrepe", *given, limit=1, seed=3))
    twinset.evaluate([("sugarcrepe", tmp_path / "data")], model, tmp_path / "own", limit=1, seed=3)
    own = pq.read_table(tmp_path / "own" / path.relative_to(tmp_path / "out"))["key"].to_pylist()
    asked = pq.read_table(path)
    assert asked["key"].to_pylist() == own and len(own) == len({*asked["subset"].to_pylist()})
    with pytest.raises(WrongUse, match="limit 0"):
        evaluate.fn([place], [model], str(tmp_path / "new"), limit=0)


@pytest.mark.parametrize(
    ("benchmarks", "models", "message"),
    [
        (["sugarcrepe"], ["random:ViT-B-32"], "write NAME=DIR"),
        ([], ["random:ViT-B-32"], "name at least one of each; benchmarks are "),
        (["sugarcrepe=/nowhere"], ["random:ViT-B-32"], "/nowhere"),
    ],
)
def test_wrong_use_is_told_before_any_work(
    tmp_path: Path, benchmarks: list[str], models: list[str], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        evaluate.fn(benchmarks, models, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
