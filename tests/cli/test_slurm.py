"""``twinset slurm`` with stand-ins for Slurm's commands; the real ones are in tests/end_to_end."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinset.cli.main import main

Slurm = Callable[..., dict[str, Any]]
#: It logs its arguments, runs what is wrapped, and numbers jobs from 1.
SBATCH = """#!/bin/bash
echo "${@:1:$#-2} ${@: -1}" >> "$LOGS/sbatch"
echo "$(wc -l < "$LOGS/sbatch");one"
"""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of what a stand-in for sbatch was asked."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sbatch").write_text(SBATCH)
    (tmp_path / "bin/sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LOGS", str(tmp_path))
    return tmp_path


@pytest.fixture
def slurm(recipe: Path, capsys: pytest.CaptureFixture[str]) -> Slurm:
    """Run ``twinset slurm RECIPE --out out OPTIONS --json``; returns what it printed."""

    def run(*options: str, out: Path = recipe.parent / "out") -> dict[str, Any]:
        assert main(["slurm", str(recipe), "--out", str(out), "--parts", "3", "--json", *options]) == 0
        printed: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return printed

    return run


def test_the_script_is_short_and_asks_as_pools_do(recipe: Path, slurm: Slurm) -> None:
    pools = ("--partition", "cpu", "--partition", "gpu=a100", "--mem", "8G", "--cpus", "2", "--at-a-time", "1")
    script = slurm("--dry-run", "--setup", ". .venv/bin/activate", "--sbatch=--account=lab", *pools)["script"]
    out = recipe.parent / "out"
    plan, parts, finish = script.splitlines()[-3:]
    build = f"cd {os.getcwd()} && . .venv/bin/activate && twinset build {recipe} --out {out}"
    asked = "--partition=cpu --mem=8G --account=lab"
    assert plan == f"submit pairs.plan {asked} --output=log/%x-%j.out --wrap '{build} --stage pairs --plan-only'"
    part = f'{build} --stage pairs --part "$SLURM_ARRAY_TASK_ID/3" --workers 2'
    array = f"submit pairs.parts {asked} --output=log/%x-%A_%a.out --array=0-2%1 --wrap '{part}'"
    assert parts == array + " --dependency=afterok:${job[pairs.plan]}"
    assert finish.endswith(f" --wrap '{build} --finish' --dependency=afterok:${{job[pairs.parts]}}")
    assert not out.exists() and len(script.splitlines()) < 20
    gpu = slurm("--dry-run", "--set", "subsets.pairs.pool=gpu", *pools)["script"].splitlines()[-2]
    assert "--partition=a100 --mem=8G --gres=gpu:1" in gpu


@pytest.mark.usefixtures("no_cards")
def test_what_has_no_receipt_is_submitted_behind_what_it_needs(recipe: Path, slurm: Slurm, logs: Path) -> None:
    block = recipe.read_text().partition("  pairs:")[2]
    recipe.write_text(f"{recipe.read_text()}\n  submit:{block}\n  finish:{block}\n")
    stages = [f"{stage}.{step}" for stage in ("pairs", "submit", "finish") for step in ("plan", "parts")]
    assert slurm()["jobs"] == {name: str(number) for number, name in enumerate([*stages, "finish"], 1)}
    asked = (logs / "sbatch").read_text().splitlines()
    assert asked[-1].endswith(" --dependency=afterok:2:4:6")
    out = recipe.parent / "out"
    assert main(["build", str(recipe), "--out", str(out)]) == 0
    assert slurm()["jobs"] == {}
    (out / "submit/_meta/receipts/00001.json").unlink()
    assert [*slurm()["jobs"]] == ["submit.plan", "submit.parts", "finish"]
    assert " --array=1 " in (out / "_slurm/submit.sh").read_text()


def test_folders_may_have_strange_names(slurm: Slurm, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = logs / """a b'c"d$e%f`g#h\\i"""
    strange.mkdir()
    monkeypatch.chdir(strange)
    wrapped = SBATCH.replace("echo", 'for word; do [[ $word == cd* ]] && bash -c "$word" >&2; done; echo', 1)
    (logs / "bin/sbatch").write_text(wrapped)
    assert len(slurm("--setup", "twinset() { printf '%s|' $PWD \"$@\"; }", out=strange / "out")["jobs"]) == 3
    done = subprocess.run(["bash", strange / "out/_slurm/submit.sh"], capture_output=True, text=True)
    assert done.returncode == 0 and f"|--out|{strange}/out|--stage|pairs|--part|" in done.stderr
