"""A grid: wrong designs are refused before the first arm, kills change no table, the papers' run to their end."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config, save_transformers
from tests.waiting import wait_until
from twinset.contracts.errors import WrongUse
from twinset.training.grids.design import PAPERS, load_design
from twinset.training.grids.run import run_grid


@pytest.fixture
def raw(made_pairs: MadeDataset, tmp_path: Path) -> dict[str, Any]:
    """An arm that begins from another, and that one as it is; of two seeds."""
    clip = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "batch": 4, "steps": 6, "lr": 1e-3,
        "warmup": 1, "threads": 1, "checkpoint_every": 2,
    }  # fmt: skip
    after = {"model": "{base}", "weights": "{base}/open_clip_model.safetensors", "steps": 4, "regulariser": "eqsim"}
    return {
        "paper": "A paper, Table 1",
        "seeds": [3, 4],
        "data": {"twins": f"{made_pairs.root}:eq-ag"},
        "folders": {"twinset": str(made_pairs.root)},
        "common": {"clip": clip},
        "tests": {
            "twins": {"title": "Twins", "benchmark": "twinset", "subsets": ["eq-gebc"], "figures": ["text", "group"]},
            "more": {"title": "More", "benchmark": "twinset", "subsets": ["eq-youcook2"], "figures": ["group"]},
            "absent": {"title": "What nobody has", "benchmark": "winoground", "figures": ["group"]},
            "both": {"title": "Mean of both", "mean_of": ["twins", "more"], "figures": ["group"]},
        },
        "arms": {
            "base": {"title": "Base", "data": ["twins"]},
            "eqsim": {"title": "+ EqSim", "data": ["twins"], "settings": after, "paper": {"twins": {"group": 12.5}}},
            "as-it-is": {"title": "The base again", "model": "open_clip:{base}"},
            "other": {"title": "METER", "paper": {"both": {"mean": 31.25}}},
        },
    }


def written(raw: dict[str, Any], folder: Path) -> Path:
    (folder / "design.yaml").write_text(json.dumps(raw))
    return folder / "design.yaml"


def percents(folder: Path) -> dict[tuple[str, str, str], float]:
    """The values of ``grid.csv`` by test, arm and figure, without those of papers."""
    with (folder / "grid.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["kind"] == "model"]
    # A spreadsheet would take "+ EqSim" for a formula: a quotation mark stands before it.
    return {(row["test"], row["arm"].lstrip("'"), row["figure"]): float(row["percent"]) for row in rows}


@pytest.mark.slow
def test_a_killed_grid_ends_with_the_same_tables(raw: dict[str, Any], tmp_path: Path) -> None:
    design, done = written(raw, tmp_path), list[str]()
    assert [*load_design(design).only(["as-it-is"]).arms] == ["as-it-is"]
    tables = run_grid(load_design(design), tmp_path / "whole", on_progress=done.append)
    assert done[2:4] == ["[3 of 6] as-it-is seed 3: done", "[4 of 6] base seed 4: done"]
    table = tables[0].read_text()
    assert "| + EqSim (paper) | – | 12.50 |" in table and "Not tested here: What nobody has." in table
    assert "## Mean of both" in table and "| METER (paper) | 31.25 |" in table
    values = percents(tmp_path / "whole")
    each = [values[test, "Base", "group"] for test in ("Twins", "More")]
    assert values["Mean of both", "Base", "mean"] == pytest.approx(sum(each) / 2, abs=1e-3)
    assert {values["Twins", arm, "text"] for arm in ("Base", "The base again")} == {values["Twins", "Base", "text"]}
    settings = json.loads((tmp_path / "whole/arms/eqsim/seed-4/settings.json").read_text())["settings"]
    assert settings["model"] == str(tmp_path / "whole/arms/base/seed-4") and settings["seed"] == 4

    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "twinset.cli.main", "train", "grid", str(design), "--out", str(killed)]
    for begun in ("arms/base/seed-3/history.jsonl", "scores/twins/eqsim-seed-3.parquet"):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            wait_until((killed / begun).is_file, child)
            os.kill(child.pid, signal.SIGKILL)
    weights = {path: path.stat().st_mtime_ns for path in killed.glob("arms/*/seed-3/last.safetensors")}
    subprocess.run(command, check=True, capture_output=True)
    assert weights and {path: path.stat().st_mtime_ns for path in weights} == weights  # trained once
    for path in tables:
        assert (killed / path.name).read_bytes() == path.read_bytes()


def test_detectors_are_an_arm_of_a_grid(raw: dict[str, Any], tmp_path: Path) -> None:
    model, folder = f"random:{raw['common']['clip']['model']}:1", raw["folders"].pop("twinset")
    raw["tests"]["twins"] |= {"folder": folder, "figures": ["group", "image_detection"]}
    settings = {"model": model, "threads": 1, "batch": 4}
    arms = {
        "trained": {"title": "Trained", "task": "detectors", "data": ["twins"], "settings": settings},
        "none": {"title": "None", "model": model},
    }
    raw |= {"seeds": [3], "common": {}, "arms": arms}
    tables = run_grid(load_design(written(raw, tmp_path)), tmp_path / "grid")
    scores = pq.read_table(tmp_path / "grid/scores/twins/trained-seed-3.parquet")
    assert 2 < len({*scores["group"].to_pylist()}) < len(scores)
    right = np.mean([scores[f"{half}_image"].to_numpy() for half in ("natural", "synthetic")])
    assert percents(tmp_path / "grid")["Twins", "Trained", "image_detection"] == pytest.approx(100 * right, abs=1e-3)
    assert "Not tested here: More; What nobody has; Mean of both." in tables[0].read_text()


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("arms.base.data=[twinz]", "arms.base.data: 'twinz' is not defined; did you mean 'twins'"),
        ("arms.base.settings.epoch=1", "arms.base: epoch: unknown"),
        ("arms.base.settings.model='{eqsim}'", "arms.base.settings: 'eqsim' is not defined"),  # it is below
        ("arms={../a: {title: A, data: [twins]}}", "should match pattern"),  # it is a folder
        ("data.twins=[]", "data.twins: arm base needs it; write --set data.twins=PLACE"),
        ("folders.twinset=absent", "tests.twins: "),
    ],
)
def test_wrong_designs_are_refused(raw: dict[str, Any], tmp_path: Path, setting: str, place: str) -> None:
    with pytest.raises(WrongUse) as caught:
        run_grid(load_design(written(raw, tmp_path), [setting]), tmp_path / "grid")
    assert place in str(caught.value) and not (tmp_path / "grid").exists()


TINY = {
    "clip": {"weights": None, "split": None, "batch": 4, "epochs": 1, "lr": 0.001, "warmup": 0, "threads": 1},
    "fusion": {"image_size": 32, "split": None, "batch": 8, "negatives": 9, "epochs": 1, "threads": 1},
    "combiner": {"weights": None, "batch": 2, "steps": 3, "projection": 12, "hidden": 20, "threads": 1},
    "detectors": {"split": None, "batch": 4, "threads": 1},
}
MATCHING = ["tests.twinset.figures=[text, group]", "tests.twinset.subsets=[eq-gebc]"]
#: What is other than in a design: the made data have other subsets, and lack benchmarks.
CHANGES = {
    "eqben": MATCHING,
    "eqben_fusion": MATCHING,
    "eqben_data": ["tests.winoground.benchmark=twinset", "tests.winoground.subsets=[eq-gebc]"]
    + [f"arms.{arm}.settings.steps=2" for arm in ("ft-4m", "eqsim-4m")],
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
        of_pairs = {"trohn-text": "text", "coco": "eq-youcook2"}.get(data, "eq-ag")
        settings.append(f"data.{data}={made_pairs.root}:{'triplets' if name == 'genecis' else of_pairs}")
    settings += [f"arms.{name}.validation=[]" for name, arm in published.arms.items() if arm.validation]  # too few data
    run_grid(load_design(tmp_path / "design.yaml", settings), tmp_path / "grid")
    scored = {arm for _, arm, _ in percents(tmp_path / "grid")}
    assert scored == {arm.title for arm in published.arms.values() if arm.data or arm.model}
