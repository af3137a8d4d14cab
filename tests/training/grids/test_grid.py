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
import yaml

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from tests.waiting import wait_until
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.training.grids.design import PAPERS, load_design
from twinset.training.grids.run import open_grid, run_grid


@pytest.fixture
def raw(made_pairs: MadeDataset, tmp_path: Path) -> dict[str, Any]:
    """An arm that begins from another, and that one as it is; of two seeds."""
    clip = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "batch": 4, "steps": 6, "lr": 1e-3,
        "warmup": 1, "threads": 1, "checkpoint_every": 2,
    }  # fmt: skip
    after = {"model": "{base}", "weights": "{base}/open_clip_model.safetensors", "steps": 4}
    return {
        "name": "tiny",
        "paper": "A paper, Table 1",
        "seeds": [3, 4],
        "data": {"twins": "pairs to train on"},
        "common": {"clip": clip},
        "tests": {
            "twins": {"title": "Twins", "benchmark": "twinset", "subsets": ["eq-gebc"], "figures": ["text", "group"]},
            "absent": {"title": "What nobody has", "benchmark": "winoground", "figures": ["group"]},
        },
        "arms": {
            "eqsim": {
                "title": "+ EqSim",
                "data": ["twins"],
                "settings": {**after, "regulariser": "eqsim"},
                "paper": {"twins": {"group": 12.5}},
            },
            "base": {"title": "Base", "data": ["twins"]},
            "as-it-is": {"title": "The base again", "model": "open_clip:{base}"},
        },
    }


def given(raw: dict[str, Any], folder: Path, made_pairs: MadeDataset, out: str) -> tuple[Any, ...]:
    (folder / "design.yaml").write_text(yaml.safe_dump(raw, sort_keys=False))
    return folder / "design.yaml", [f"twins={made_pairs.root}:eq-ag"], [f"twins={made_pairs.root}"], folder / out


@pytest.mark.slow
def test_arms_begin_from_others_and_figures_stand_beside_the_papers(
    raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path
) -> None:
    said: list[str] = []
    found = run_grid(open_grid(*given(raw, tmp_path, made_pairs, "grid")), said.append)
    trained = ["base seed 3", "base seed 4", "eqsim seed 3", "eqsim seed 4"]
    assert said[:4] == [f"[{n} of 4] {name}: trained" for n, name in enumerate(trained, 1)]
    table = (tmp_path / "grid/grid.md").read_text()
    assert "| + EqSim (paper) | – | 12.50 |" in table and "Not tested here: What nobody has." in table
    arms = found["figures"]["twins"]
    assert arms["base"] == arms["as-it-is"] and len(arms) == 3
    value, low, high = arms["eqsim"]["group"]
    assert low <= value <= high
    settings = json.loads((tmp_path / "grid/arms/eqsim/seed-4/settings.json").read_text())
    assert "arms/base/seed-4" in json.dumps(settings) and '"seed": 4' in json.dumps(settings)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grid/arms").rglob("*.safetensors")}
    scores = {path: path.stat().st_mtime_ns for path in (tmp_path / "grid/scores").rglob("*.parquet")}
    (tmp_path / "grid/scored/base-3.json").write_text("[1")  # damaged: this run alone is scored again
    scores.pop(tmp_path / "grid/scores/twins/base-seed-3.parquet")
    again: list[str] = []
    assert run_grid(open_grid(*given(raw, tmp_path, made_pairs, "grid")), again.append)["figures"] == found["figures"]
    assert all("was finished" in line for line in again[:4])
    assert {path: path.stat().st_mtime_ns for path in (*before, *scores)} == before | scores  # nothing is done again


def test_a_mean_over_tests_stands_in_a_table_of_its_own(
    raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path
) -> None:
    more = {"title": "More twins", "benchmark": "twinset", "subsets": ["eq-youcook2"], "figures": ["group"]}
    raw["tests"]["more"], raw["seeds"] = more, [3]
    raw["means"] = {"both": {"title": "Mean of both", "tests": ["twins", "more"], "figures": ["group"]}}
    raw["arms"] = {"base": {**raw["arms"]["base"], "paper": {"both": {"mean": 31.25}}}}
    design, data, tests, out = given(raw, tmp_path, made_pairs, "grid")
    found = run_grid(open_grid(design, data, [*tests, f"more={made_pairs.root}"], out), lambda line: None)["figures"]
    each = [found[test]["base"]["group"][0] for test in ("twins", "more")]
    assert found["both"]["base"]["mean"][0] == pytest.approx(sum(each) / 2)
    table = (out / "grid.md").read_text()
    assert "## Mean of both" in table and "| Base (paper) | 31.25 |" in table


def test_detectors_are_resampled_by_group_and_say_what_they_tell_apart(
    raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path
) -> None:
    model = f"random:{raw['common']['clip']['model']}:1"
    raw |= {"seeds": [3], "common": {}}
    raw["tests"]["twins"] |= {"figures": ["group", "image_detection"], "heads": {"group": "Group"}}
    raw["arms"] = {
        "told": {
            "title": "Told", "task": "detectors", "data": ["twins"], "settings": {"model": model, "threads": 1},
            "paper": {"twins": {"image_detection": 100}}, "others": {"SDXL": {"twins": {"image_detection": 100}}},
        },
    }  # fmt: skip
    said: list[str] = []
    run_grid(open_grid(*given(raw, tmp_path, made_pairs, "grid")), said.append)
    assert said[0] == "[1 of 1] told seed 3: trained"
    scores = pq.read_table(tmp_path / "grid/scored/told-3-twins.parquet")
    groups = {one.group for one in open_benchmark("twinset", made_pairs.root, ["eq-gebc"]).examples()}
    assert len({*scores["group"].to_pylist()}) == len(groups) > 2  # these are not the group scores
    told = [np.mean([scores[f"{half}_image"].to_numpy() for half in ("natural", "synthetic")])]
    found = json.loads((tmp_path / "grid/grid.json").read_text())["twins"]["told"]["image_detection"]
    assert found[0] == pytest.approx(100 * told[0]) and found[1] <= found[0] <= found[2]
    table = (tmp_path / "grid/grid.md").read_text()
    assert "| arm | Group | image\\_detection |" in table
    assert "| Told (paper) | – | 100.00 |" in table and "| Told (paper: SDXL) | – | 100.00 |" in table
    rows = list(csv.DictReader((tmp_path / "grid/grid.csv").open()))  # one table, which any reader opens
    assert {row["figure"] for row in rows} == {"Group", "image_detection"} and {row["test"] for row in rows} == {
        "Twins"
    }
    assert [row["percent"] for row in rows if row["kind"] == "published"] == ["100", "100"]


def test_tests_of_a_benchmark_share_a_folder_and_read_some_categories(
    raw: dict[str, Any], made_text_pairs: MadeDataset, tmp_path: Path
) -> None:
    additions = {"title": "Additions", "benchmark": "twinset", "subsets": ["text"], "figures": ["accuracy"]}
    raw["tests"] = {"all": additions, "additions": {**additions, "categories": ["add_obj"]}}
    raw["arms"] = {"none": {"title": "None", "model": f"random:{raw['common']['clip']['model']}:1"}}
    (tmp_path / "design.yaml").write_text(json.dumps(raw))
    grid = open_grid(tmp_path / "design.yaml", [], [f"twinset={made_text_pairs.root}"], tmp_path / "grid")
    run_grid(grid, lambda line: None)
    kinds = {test: pq.read_table(grid.scores(grid.runs()[0], test))["category"].to_pylist() for test in grid.opened}
    assert {*kinds["additions"]} == {"add_obj"} and 0 < len(kinds["additions"]) < len(kinds["all"])
    raw["tests"]["additions"]["categories"] = ["add_ob"]
    (tmp_path / "design.yaml").write_text(json.dumps(raw))
    with pytest.raises(WrongUse, match=r"--test additions: .*: subset 'text' of Additions has no add_ob"):
        open_grid(tmp_path / "design.yaml", [], [f"twinset={made_text_pairs.root}"], tmp_path / "other")


def test_a_test_that_asks_nothing_is_refused_before_the_first_arm(
    raw: dict[str, Any], made_triplets: MadeDataset, tmp_path: Path
) -> None:
    raw["tests"] = {"triplets": {"title": "T", "benchmark": "twinset", "figures": ["recall@1"]}}
    raw["arms"] = {"none": {"title": "None", "model": "random:tiny.json:1"}}
    (tmp_path / "design.yaml").write_text(yaml.safe_dump(raw))
    tests = [f"triplets={made_triplets.root}"]
    settings = ["tests.triplets.subsets=[two-images]"]
    with pytest.raises(
        WrongUse, match=r"--test triplets: .* 8 examples are left out, .* no distractor .*distractors=true"
    ):
        open_grid(tmp_path / "design.yaml", [], tests, tmp_path / "grid", settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arm": 1}, "arm: there is no such key"),
        ({"seeds": []}, "seeds: "),
        ({"seeds": [1, 1]}, "seeds: 1 is duplicated"),
        ({"tests": {"t": {"title": "T", "benchmark": "winogrand", "figures": ["group"]}}}, "did you mean 'winoground'"),
        ({"arms": {"a": {"title": "A", "data": ["twinz"]}}}, "'twinz' is not defined; did you mean 'twins'"),
        ({"arms": {"a": {"title": "A", "data": ["twins"], "task": "clipp"}}}, "did you mean 'clip'"),
        ({"arms": {"a": {"title": "A", "data": ["twins"], "settings": {"model": "{b}"}}}}, "'b' is not defined"),
        ({"arms": {"a": {"title": "A", "data": ["twins"], "settings": {"model": "{a}"}}}}, "begin from each other"),
        ({"common": {"clip": {"model": "{eqsim}"}}}, "common.clip.model: only an arm's own settings name arms"),
        ({"arms": {"a": {"title": "A"}}}, "data: name some, or a model alone"),
        ({"arms": {"a": {"title": "A", "data": ["twins"], "settings": {"epoch": 1}}}}, "arms.a: epoch: unknown"),
        ({"arms": {"a": {"title": "A", "data": ["twins"], "settings": {"regulariser": "eqsimm"}}}}, "eqsim"),
        (
            {"means": {"m": {"title": "M", "tests": ["twins", "abse"], "figures": ["group"]}}},
            "means.m: 'abse' is not a test with the figure 'group'",
        ),
        (
            {"tests": {"t": {"title": "T", "benchmark": "twinset", "figures": ["group"], "heads": {"grup": "G"}}}},
            "tests.t: heads: 'grup' is not a figure; did you mean 'group'",
        ),
        (
            {"arms": {"a": {"title": "A", "data": ["twins"], "others": {"M": {"twins": {"image": 1}}}}}},
            "arms.a.others.M.twins: 'image' is not a figure of this test",
        ),
        ({"arms": {"../a": {"title": "A", "data": ["twins"]}}}, "String should match pattern"),
    ],
)
def test_a_wrong_design_is_refused_before_the_first_arm(
    raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongUse) as caught:
        open_grid(*given(raw | change, tmp_path, made_pairs, "grid"))
    assert message in str(caught.value) and not (tmp_path / "grid").exists()


@pytest.mark.parametrize(
    ("data", "tests", "message"),
    [
        (
            [],
            ["twins=x"],
            "--data: twins is not given (pairs to train on); write --data twins=PLACE, or name the --only arms",
        ),
        (["twin=x"], [], "--data twin: the design has none of this name; did you mean 'twins'"),
        (["twins"], [], "--data twins: write NAME=PLACE"),
        (["twins=absent"], ["twins=absent"], "arms.base: "),
        (["twins={pairs}"], [], "--test: name one at least, as in --test twins=DIR"),
        (["twins={pairs}"], ["twins=absent"], "--test twins: "),
    ],
)
def test_places_are_checked_before_the_first_arm(
    raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path, data: list[str], tests: list[str], message: str
) -> None:
    path = given(raw, tmp_path, made_pairs, "grid")[0]
    with pytest.raises(WrongUse) as caught:
        open_grid(path, [one.format(pairs=made_pairs.root) for one in data], tests, tmp_path / "grid")
    assert message in str(caught.value) and not (tmp_path / "grid").exists()


def test_some_arms_bring_those_that_they_begin_from(raw: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "design.yaml").write_text(yaml.safe_dump(raw))
    design = load_design(tmp_path / "design.yaml")
    assert design.only(["as-it-is"]).order == ["base", "as-it-is"]
    with pytest.raises(WrongUse, match="arm 'eqsm': did you mean 'eqsim'"):
        design.only(["eqsm"])


@pytest.mark.parametrize("name", PAPERS)
def test_designs_of_the_papers_are_whole(name: str) -> None:
    design = load_design(Path(name))
    assert len(design.order) == len(design.arms) >= 4 and sum(bool(arm.paper) for arm in design.arms.values()) >= 4


def test_a_design_that_is_no_file_or_no_yaml(tmp_path: Path) -> None:
    for content, message in ((b"[1, 2]", "not a design"), (b"a: [", "not YAML"), (b"\xff", "not YAML")):
        (tmp_path / "d.yaml").write_bytes(content)
        with pytest.raises(WrongUse, match=message):
            load_design(tmp_path / "d.yaml")
    with pytest.raises(WrongUse, match="cannot be read"):
        load_design(tmp_path / "absent.yaml")


@pytest.mark.slow
def test_a_killed_grid_ends_with_the_same_tables(raw: dict[str, Any], made_pairs: MadeDataset, tmp_path: Path) -> None:
    design, data, tests, whole = given(raw, tmp_path, made_pairs, "whole")
    run_grid(open_grid(design, data, tests, whole), lambda line: None)
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "twinset.cli.main", "train", "grid", str(design), "--out", str(killed)]
    command += ["--data", data[0], "--test", tests[0]]
    arms = [f"arms/{arm}/seed-3/history.jsonl" for arm in ("base", "eqsim")]
    for begun in (*arms, "scores/twins/eqsim-seed-3.parquet"):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            wait_until((killed / begun).is_file, child)
            os.kill(child.pid, signal.SIGKILL)
    subprocess.run(command, check=True, capture_output=True)
    for name in ("grid.md", "grid.csv", "grid.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
