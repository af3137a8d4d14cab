"""The papers' designs run to their end with a tiny model; killed with -9 they end with the same tables."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.evaluation.scorers.tiny_models import open_clip_config, save_transformers
from tests.made_datasets import MadeDataset
from tests.waiting import wait_until
from twinset.training.grids.design import load_design
from twinset.training.grids.run import open_grid, run_grid

CLIP = ("weights=null", "split=null", "batch=4", "epochs=1", "lr=0.001", "warmup=0", "threads=1", "checkpoint_every=1")
FUSION = ("image_size=32", "split=null", "batch=8", "negatives=9", "epochs=1", "threads=1", "checkpoint_every=1")
COMBINER = (
    "weights=null", "batch=2", "steps=3", "projection=12", "hidden=20", "threads=1", "checkpoint_every=1",
    "held_out=0.3", 
)  # fmt: skip
MATCHING = "tests.twinset.figures=[text, group]"


def arguments(design: str, root: str, model: str, fusion: str) -> list[str]:
    """Of ``twinset train grid``, on the made data below a root."""
    name, pairs, random = design.partition("-")[0], f"{root}:eq-ag", f"random:{model}:1"
    arms = load_design(Path(design)).arms
    changed: list[str]
    data: Sequence[str]
    if name in ("eqben", "eqben_data"):
        changed = [f"common.clip.{one}" for one in (f"model={model}", *CLIP)]
        data = [f"{one}={pairs}" for one in (["train"] if name == "eqben" else ["f30k", "coco", "4m"])]
        tests = ["twinset" if name == "eqben" else "winoground"]
        if name == "eqben":
            changed += [MATCHING, f"arms.base.model={random}"]
        else:
            changed += ["tests.winoground.benchmark=twinset", "arms.ft-4m.settings.steps=2"]
            changed += ["arms.eqsim-4m.settings.steps=2"]
        changed += ["tests.twinset.subsets=[eq-gebc]"] if name == "eqben" else ["tests.winoground.subsets=[eq-gebc]"]
    elif name == "eqben_fusion":
        changed = [MATCHING, "tests.twinset.subsets=[eq-gebc]", f"arms.base.model={fusion}"]
        changed += [f"common.fusion.{one}" for one in (f"model={fusion}", *FUSION)]
        data, tests = [f"train={pairs}"], ["twinset"]
    elif name == "bivlc":
        changed = [f"common.clip.{one}" for one in (f"model={model}", *CLIP)]
        changed += [f"arms.none.model={random}", f"arms.detectors.settings.model={random}"]
        changed += ["tests.twins.subsets=[eq-gebc]", "tests.text-pairs.subsets=[text]"]
        data = [f"coco={pairs}", f"trohn-img={pairs}", f"trohn-text={root}:text"]
        tests = ["twins", "text-pairs"]
    else:
        changed = [f"common.combiner.{one}" for one in (f"model={model}", *COMBINER)]
        changed += [f"arms.{arm}.model={kind}:{random}" for arm, kind in (
            ("image", "image-only"), ("text", "text-only"), ("both", "image+text")
        )]  # fmt: skip
        data = [f"{one}={root}:triplets" for one in sorted({one for arm in arms.values() for one in arm.data})]
        changed += ["tests.twinset.subsets=[triplets]"]
        tests = ["twinset"]
    changed += [f"arms.{arm}.validation=[]" for arm in arms if arms[arm].validation]  # the made data are too few
    found = [design]
    for option, values in (("--data", data), ("--test", [f"{one}={root}" for one in tests]), ("--set", changed)):
        found += [part for value in values for part in (option, value)]
    return found


def given(command: Sequence[str], option: str) -> list[str]:
    return [value for name, value in pairwise(command) if name == option]


@pytest.mark.slow
@pytest.mark.parametrize("design", ["eqben", "eqben_data", "eqben_fusion", "bivlc", "genecis"])
def test_a_papers_grid_that_is_killed_ends_with_the_same_tables(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset, made_triplets: MadeDataset, tmp_path: Path, design: str
) -> None:
    model = str(open_clip_config(tmp_path / "model"))
    fusion = f"blip-itm:{save_transformers(tmp_path / 'fusion', 'blip')}"
    said = arguments(design, str(made_triplets.root), model, fusion)
    places = [given(said, option) for option in ("--data", "--test")]
    grid = open_grid(Path(said[0]), *places, tmp_path / "whole", given(said, "--set"))
    whole = run_grid(grid, lambda line: None)
    trained = [run for level in grid.levels() for run in level]
    command = [sys.executable, "-m", "twinset.cli.main", "train", "grid", *said, "--out", str(tmp_path / "killed")]
    begun = tmp_path / "killed/arms" / trained[len(trained) // 2].arm
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        wait_until(begun.exists, child)
        os.kill(child.pid, signal.SIGKILL)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "was finished" in done.stderr
    for name in ("grid.md", "grid.csv", "grid.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    tested = next(iter(whole["figures"].values()))
    assert {*grid.design.arms} == {arm for figures in whole["figures"].values() for arm in figures}
    assert all(json.dumps(row) for row in tested.values())
