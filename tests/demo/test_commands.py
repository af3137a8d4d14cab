"""``twinset eval demo`` on small datasets of every kind."""

import json
from pathlib import Path

import pytest

from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from twinset.cli.main import main
from twinset_demo import scoring as demo


def test_every_kind_is_a_benchmark_of_its_own_with_a_page(
    tmp_path: Path,
    made_pairs: MadeDataset,
    made_text_pairs: MadeDataset,
    made_templates: MadeDataset,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert made_pairs.root == made_text_pairs.root == made_templates.root
    tiny = str(open_clip_config(tmp_path))
    monkeypatch.setattr(demo, "ENCODERS", (f"random:{tiny}:0", f"random:{tiny}:1"))
    places = ["--data", str(made_pairs.root), "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    assert main(["eval", "demo", *places]) == 0
    page = tmp_path / "out/report.html"
    assert capsys.readouterr().out.endswith(f"{page}\n")
    benchmarks = json.loads((tmp_path / "out/results.json").read_text())["benchmarks"]
    models = {name: len(benchmark["models"]) for name, benchmark in benchmarks.items()}
    assert models == {"demo-pairs": 2, "demo-text-pairs": 2, "demo-galleries": 3}
    for name, benchmark in benchmarks.items():
        for model in benchmark["models"].values():
            figures = model["all"].keys() & {"group", "accuracy", "recall@1"}
            # One sample of each kind has a text too long to ask.
            assert len(figures) == 1 and model["all"]["n"] >= 7, name
    assert page.read_text().count("<img") > 10, "mistakes are shown"
