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
    out = tmp_path / "out"
    assert (
        main(["eval", "demo", "--data", str(made_pairs.root), "--out", str(out), "--cache", str(tmp_path / "c")]) == 0
    )
    printed = capsys.readouterr().out
    assert printed.endswith(f"{out}/report.html\n")
    found = json.loads((out / "results.json").read_text())
    assert {name: len(one["models"]) for name, one in found["benchmarks"].items()} == {
        "demo-pairs": 2, "demo-text-pairs": 2, "demo-galleries": 3
    }  # fmt: skip
    for name, one in found["benchmarks"].items():
        for model in one["models"].values():
            figures = model["all"].keys() & {"group", "accuracy", "recall@1"}
            # One sample of each kind has a text too long to ask.
            assert len(figures) == 1 and model["all"]["n"] >= 7, name
    assert (out / "report.html").read_text().count("<img") > 10, "mistakes are shown"


def test_a_benchmark_of_the_demo_is_known_by_its_subsets(made_pairs: MadeDataset, made_templates: MadeDataset) -> None:
    pairs, galleries = demo.demo_parts(Path(made_templates.root))
    assert (pairs.name, galleries.name) == ("demo-pairs", "demo-galleries")
    assert pairs.digest() != galleries.digest() and len({one.subset for one in galleries.examples()}) == 4
