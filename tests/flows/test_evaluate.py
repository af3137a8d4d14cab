"""The flow ``evaluate`` without a server: its task, and what it refuses before any work."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.evaluation.benchmarks.made_layouts import sugarcrepe
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.flows.models import evaluate, score_task
from twinset.manifests.errors import WrongUse

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


@pytest.mark.parametrize(
    ("benchmarks", "models", "message"),
    [
        (["sugarcrepe"], ["random:ViT-B-32"], "write NAME=DIR"),
        ([], ["random:ViT-B-32"], "name at least one of each; benchmarks are aro, "),
        (["sugarcrepe=/nowhere"], ["random:ViT-B-32"], "/nowhere"),
    ],
)
def test_wrong_use_is_told_before_any_work(
    tmp_path: Path, benchmarks: list[str], models: list[str], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        evaluate.fn(benchmarks, models, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
