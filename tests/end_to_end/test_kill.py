"""Kill -9 at random moments, again and again: the dataset ends as if nothing had happened."""

import contextlib
import os
import random
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

KILLS = 20
KILLS_OF_NEGATIVES = 4
SEED = 20
STAGES = {"parse": "_stages/scene-graphs", "mining": "triplets/_meta/plan", "shards": "triplets/_meta/receipts"}


def listing(out: Path) -> set[str]:
    """Everything below OUT, while others write there."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(out) for name in ("", *names)}


@pytest.mark.slow
def test_killed_while_it_parses_mines_and_makes_shards(
    start_twinset: Any, dag_recipe: Path, dag_reference: Path, contents: Any, twinset: Any, until: Any, tmp_path: Path
) -> None:
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(dag_reference)
    command = ("build", dag_recipe, "--out", out, "--workers", "2")
    met = dict.fromkeys(STAGES, 0)
    finished = 0
    while sum(met.values()) < KILLS or not all(met.values()):
        assert sum(met.values()) < 2 * KILLS, met
        # Where chance met only the others, a new build dies as soon as it reaches the stage.
        unmet = next((one for one, times in met.items() if not times), "") if sum(met.values()) >= KILLS else ""
        if unmet:
            shutil.rmtree(out)
        before, process = listing(out), start_twinset(*command)
        # A build dies some files after it began to write: later ones die later in the DAG.
        files = chance.randint(1, 12)
        until(partial(_has_written, out, before, files, process) if not unmet else partial(_reaches, out, unmet), 0.002)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0 if unmet else chance.uniform(0, 0.5))
        process.kill()
        assert process.wait() in (0, -9), (tmp_path / "log").read_text()[-2000:]
        if contents(out) == whole:
            finished += 1
            assert finished <= KILLS, met
            _remove_some(out, chance)
            continue
        stage = "shards" if (out / STAGES["shards"]).exists() else "mining" if _parsed(out) else "parse"
        met[stage] += 1
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0


@pytest.mark.slow
def test_killed_while_negatives_are_written_scored_selected_and_drawn(
    start_twinset: Any,
    negatives_recipe: Path,
    negatives_reference: Path,
    contents: Any,
    twinset: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(negatives_reference)
    command = ("build", negatives_recipe, "--out", out, "--workers", "2")
    for _ in range(KILLS_OF_NEGATIVES):
        before, process = listing(out), start_twinset(*command)
        until(partial(_has_written, out, before, chance.randint(10, 60), process), 0.002)
        process.kill()
        assert process.wait() in (0, -9), (tmp_path / "log").read_text()[-2000:]
        if contents(out) == whole:
            _remove_some(out, chance)
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0


def _has_written(out: Path, before: set[str], files: int, process: subprocess.Popen[bytes]) -> bool:
    return len(listing(out) - before) >= files or process.poll() is not None


def _reaches(out: Path, stage: str) -> bool:
    return _parsed(out) if stage == "mining" else (out / STAGES[stage]).exists()


def _parsed(out: Path) -> bool:
    return (out / "_stages/scene-graphs/_meta/index.json").exists()


def _remove_some(out: Path, chance: random.Random) -> None:
    """Lose receipts of any stage, so that a finished dataset has something to do again."""
    receipts = sorted(out.rglob("receipts/*.json"))
    for receipt in chance.sample(receipts, len(receipts) // 2):
        receipt.unlink()


@pytest.mark.slow  # tests/stages kills children of drawn sources
def test_killed_once_with_its_children_at_work(
    start_twinset: Any, small_recipe: Path, reference: Path, contents: Any, twinset: Any, until: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ("build", small_recipe, "--out", out, "--workers", "2", "--runner", "processes")
    process = start_twinset(*command)
    until(lambda: any(out.glob("*/_meta/receipts/*.json")))
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert process.wait() == -9 and children
    until(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
    assert contents(out) != contents(reference)
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(reference)
