"""The miniature of BiVLC with simulated people: what they do is what their error rate predicts, also after kill -9."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import twinset
from tests.generators.decisions.predicted import expected_drop_rate, expected_kappa
from twinset.generators.decisions.agreement import share
from twinset.generators.decisions.generator import decision_of
from twinset.generators.decisions.question import tasks_of
from twinset.generators.decisions.report import read_report
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

CHECKOUT = Path(__file__).parents[2]
ERROR_RATE = 0.1
ROUNDS = ("ambiguous-additions", "chosen", "unambiguous")
DRAWN = ("negatives", "prompts", "images", "verified")
#: The build is killed when each of these is there: at the first, second and last round of questions, and at the pairs.
MOMENTS = tuple(f"{home}/_meta/stage.json" for home in (*(f"_stages/{name}" for name in ROUNDS), "bivlc"))


def building(out: Path) -> subprocess.Popen[bytes]:
    """`twinset build bivlc-simulated` of some of its captions, in a session of its own."""
    settings = ("stages.negatives.count=48", "stages.images.source.engine.steps=1", "stages.images.shard_size=96")
    asked = ["build", "bivlc-simulated", "--out", str(out), *(f"--set={one}" for one in settings)]
    command = [sys.executable, "-m", "twinset.cli.main", *asked]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL, start_new_session=True)


def killed_when(out: Path, moment: Path) -> bool:
    """Build until a file is there, then kill all; whether it was there before the build ended."""
    with building(out) as process:
        while process.poll() is None and not moment.exists():
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_bivlc_with_simulated_people(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with building(whole) as process:
        pass
    assert process.returncode == 0
    for name in DRAWN:  # killed while images are drawn: tests/end_to_end/test_kill.py
        shutil.copytree(whole / "_stages" / name, broken / "_stages" / name)
    assert sum(killed_when(broken, broken / moment) for moment in MOMENTS) >= 3
    with building(broken) as process:
        pass
    assert process.returncode == 0
    assert contents(broken) == contents(whole)

    found = twinset.status(str(whole))
    for name, counts in {**found["stages"], **found["subsets"]}.items():
        assert counts["planned"] == counts["kept"] + sum(counts["rejected"].values()), name
    card = (whole / "bivlc" / "README.md").read_text()
    assert f"SIMULATED people chose the images of {found['subsets']['bivlc']['kept']} pairs" in card
    assert {one.json.provenance["choice"] for one in twinset.load(str(whole), "bivlc")} == {"simulated people"}
    before = set[str]()
    for name in ROUNDS:
        stage = FinishedStage(Store(str(whole)), f"_stages/{name}")
        assert f"Stage `{name}`" in card
        assert stage.read(["simulated"])["simulated"].to_pylist() == [True] * stage.record.rows
        asked = [one for one in tasks_of(stage) if one.binding not in before]  # the others were carried over
        before |= {one.binding for one in asked}
        rate = share(sum(not decision_of(one).kept for one in asked), len(asked))
        assert rate.low <= expected_drop_rate(asked, [True] * len(asked), ERROR_RATE) <= rate.high, name
        report = read_report(stage)
        assert (report["simulated"], report["tasks"] - report["carried"]) == (
            {"number": 2, "error_rate": ERROR_RATE},
            len(asked),
        )
        (pair,) = report["agreement"]["pairs"]
        assert pair["tasks"] == len(asked), name
        if name == "chosen" or pair["kappa"] is not None:  # of a round in which all agreed there is none
            assert pair["low"] <= expected_kappa(asked, ERROR_RATE) <= pair["high"], name
