"""The papers' designs run to their end, with tiny models and made data."""

import csv
import json
from pathlib import Path

import pytest

from tests.evaluation.scorers.tiny_models import open_clip_config, save_transformers
from tests.made_datasets import MadeDataset
from twinset.training.grids.design import PAPERS, load_design
from twinset.training.grids.run import run_grid

CLIP = {"weights": None, "split": None, "batch": 4, "epochs": 1, "lr": 0.001, "warmup": 0, "threads": 1}
TINY = {
    "clip": CLIP,
    "fusion": {"image_size": 32, "split": None, "batch": 8, "negatives": 9, "epochs": 1, "threads": 1},
    "combiner": {
        "weights": None,
        "batch": 2,
        "steps": 3,
        "projection": 12,
        "hidden": 20,
        "threads": 1,
        "held_out": 0.3,
    },
    "detectors": {"split": None, "batch": 4, "threads": 1},
}
MATCHING = ["tests.twinset.figures=[text, group]", "tests.twinset.subsets=[eq-gebc]"]
#: What is other than in a design: the made data have other subsets, and lack benchmarks.
CHANGES = {
    "eqben": MATCHING,
    "eqben_fusion": MATCHING,
    "eqben_data": ["tests.winoground.benchmark=twinset", "tests.winoground.subsets=[eq-gebc]"],
    "bivlc": ["tests.twins.subsets=[eq-gebc]", "tests.text-pairs.subsets=[text]"],
    "genecis": ["tests.twinset.subsets=[triplets]"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_design_runs_to_its_end(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset, made_triplets: MadeDataset, tmp_path: Path, name: str
) -> None:
    published = load_design(Path(name))
    assert not any((*published.data.values(), *published.folders.values()))  # places are the user's
    text, clip = PAPERS[name].read_text("utf-8"), str(open_clip_config(tmp_path / "clip"))
    for architecture in ("ViT-B-32-quickgelu", "RN50x4"):
        text = text.replace(f"open_clip:{architecture}:openai", f"random:{clip}:1").replace(architecture, clip)
    text = text.replace("weights/blip-itm", str(save_transformers(tmp_path / "blip", "blip")))
    (tmp_path / "design.yaml").write_text(text, "utf-8")
    settings = [*CHANGES[name], f"folders={{twinset: {made_pairs.root}}}"]
    for task in published.common:
        settings += [f"common.{task}.{setting}={json.dumps(value)}" for setting, value in TINY[task].items()]
    for data in published.data:
        subset = "triplets" if name == "genecis" else "text" if data == "trohn-text" else "eq-ag"
        settings.append(f"data.{data}={made_pairs.root}:{subset}")
    settings += [f"arms.{name}.validation=[]" for name, arm in published.arms.items() if arm.validation]  # too few data
    run_grid(load_design(tmp_path / "design.yaml", settings), tmp_path / "grid")
    with (tmp_path / "grid/grid.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["kind"] == "model"]
    assert {row["arm"] for row in rows} == {arm.title for arm in published.arms.values() if arm.data or arm.model}
