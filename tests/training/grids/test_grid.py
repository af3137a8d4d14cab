"""A grid: wrong designs are refused before the first arm, arms begin from others, kills change no table."""

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

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from tests.waiting import wait_until
from twinset.contracts.errors import WrongUse
from twinset.training.grids.design import Design, load_design
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


def percents(folder: Path, kind: str = "model") -> dict[tuple[str, str, str], float]:
    """The values of ``grid.csv`` by test, arm and figure."""
    with (folder / "grid.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["kind"] == kind]
    return {(row["test"], row["arm"], row["figure"]): float(row["percent"]) for row in rows}


@pytest.mark.slow
def test_arms_begin_from_others_and_a_killed_grid_ends_with_the_same_tables(
    raw: dict[str, Any], tmp_path: Path
) -> None:
    design, done = written(raw, tmp_path), list[str]()
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


def test_detectors_are_resampled_by_group_and_say_what_they_tell_apart(raw: dict[str, Any], tmp_path: Path) -> None:
    settings = {"model": f"random:{raw['common']['clip']['model']}:1", "threads": 1, "batch": 4}
    raw["tests"]["twins"]["figures"] = ["group", "image_detection"]
    arm = {"title": "Told", "task": "detectors", "data": ["twins"], "settings": settings}
    raw |= {"seeds": [3], "common": {}, "arms": {"told": arm}}
    tables = run_grid(load_design(written(raw, tmp_path)), tmp_path / "grid")
    scores = pq.read_table(tmp_path / "grid/scores/twins/told-seed-3.parquet")
    assert 2 < len({*scores["group"].to_pylist()}) < len(scores)
    right = np.mean([scores[f"{half}_image"].to_numpy() for half in ("natural", "synthetic")])
    assert percents(tmp_path / "grid")["Twins", "Told", "image_detection"] == pytest.approx(100 * right, abs=1e-3)
    assert "| arm | group | image\\_detection |" in tables[0].read_text()


def test_a_test_reads_its_categories_and_its_own_folder(
    raw: dict[str, Any], made_text_pairs: MadeDataset, tmp_path: Path
) -> None:
    every = {"title": "All", "benchmark": "twinset", "subsets": ["text"], "figures": ["accuracy"]}
    raw["tests"] = {"all": every, "some": {**every, "folder": str(made_text_pairs.root), "categories": ["add_obj"]}}
    raw |= {"seeds": [3], "folders": {}}
    raw["arms"] = {"none": {"title": "None", "model": f"random:{raw['common']['clip']['model']}:1"}}
    tables = run_grid(load_design(written(raw, tmp_path)), tmp_path / "grid")
    assert {*pq.read_table(tmp_path / "grid/scores/some/none-seed-3.parquet")["category"].to_pylist()} == {"add_obj"}
    assert "Not tested here: All." in tables[0].read_text()
    with pytest.raises(WrongUse, match=r"tests\.some: .*has no add_ob"):
        run_grid(load_design(written(raw, tmp_path), ["tests.some.categories=[add_ob]"]), tmp_path / "wrong")


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("arm=1", "arm: unknown"),
        ("seeds=[]", "seeds: "),
        ("tests.absent.benchmark=winogrand", "tests.absent.benchmark: 'winogrand' is not defined; did you mean"),
        ("folders.bivlc=x", "folders: 'bivlc' is not defined"),
        ("tests.both.mean_of=[twins, abse]", "tests.both.mean_of: 'abse' is not defined"),
        ("tests.both.figures=[text]", "tests.both.figures: 'text' is not defined"),
        ("arms.base.data=[twinz]", "arms.base.data: 'twinz' is not defined; did you mean 'twins'"),
        ("arms.base.task=clipp", "arms.base.task: "),
        ("arms.base.settings.epoch=1", "arms.base: epoch: unknown"),
        ("arms.base.settings.regulariser=eqsimm", "arms.base: "),
        ("arms.base.settings.model='{eqsim}'", "arms.base.settings: 'eqsim' is not defined"),  # it is below
        ("arms.base.data=[]", "arms.base: data: name some"),
        ("arms.base.paper.twins.image=1", "arms.base.paper.twins: 'image' is not defined"),
        ("arms={../a: {title: A, data: [twins]}}", "should match pattern"),  # it is a folder
        ("data.twins=[]", "data.twins: arm base needs it; write --set data.twins=PLACE"),
        ("data.twins=absent", "arms.base: "),
        ("folders.twinset=absent", "tests.twins: "),
        ("folders.twinset=null", "folders: name one"),
    ],
)
def test_what_is_wrong_is_refused_before_the_first_arm(
    raw: dict[str, Any], tmp_path: Path, setting: str, place: str
) -> None:
    with pytest.raises(WrongUse) as caught:
        run_grid(load_design(written(raw, tmp_path), [setting]), tmp_path / "grid")
    assert place in str(caught.value) and not (tmp_path / "grid").exists()


@pytest.mark.parametrize("content", ["[1, 2]", "a: [", "\xff", ""])
def test_a_design_that_is_not_yaml_of_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "d.yaml").write_text(content, "latin-1")
    with pytest.raises(WrongUse, match=r"d\.yaml: "):
        load_design(tmp_path / "d.yaml")


def test_some_arms_alone(raw: dict[str, Any]) -> None:
    design = Design.model_validate(raw)
    assert [*design.only(["as-it-is"]).arms] == ["as-it-is"] and design.only([]) == design
    with pytest.raises(WrongUse, match="arm 'eqsm': did you mean 'eqsim'"):
        design.only(["eqsm"])
