"""``twinset slurm`` and its states, with stand-ins for Slurm's commands; the real ones are in tests/end_to_end."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinset.cli.main import main
from twinset.cli.slurm_states import comment_of, slurm_states

#: Each logs its arguments. sbatch numbers jobs from 1, and fails at call FAILS.
STAND_INS = {
    "sbatch": """echo "$*" >> "$LOGS/sbatch"; n=$(wc -l < "$LOGS/sbatch")
[ "$n" != "$FAILS" ] || { echo "sbatch: error: no" >&2; exit 1; }
echo "$n;one\"""",
    "scancel": 'echo "$*" >> "$LOGS/scancel"',
    "sinfo": "echo cpu",
    "scontrol": "echo 'MaxArraySize            = 1001'",
    "squeue": 'cat "$LOGS/queue" 2>/dev/null; true',
    "sacct": 'echo "$*" >> "$LOGS/sacct"; cat "$LOGS/accounts" 2>/dev/null || { echo disabled >&2; exit 1; }',
}


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of what the stand-ins were asked, and of what they answer."""
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("LOGS", str(tmp_path))
    monkeypatch.setenv("FAILS", "0")
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    return tmp_path


Slurm = Callable[..., dict[str, Any]]


@pytest.fixture
def slurm(recipe: Path, capsys: pytest.CaptureFixture[str]) -> Slurm:
    """Run ``twinset slurm RECIPE --out out OPTIONS --json``; returns what it printed."""

    def run(*options: str, code: int = 0, out: str | Path = recipe.parent / "out") -> dict[str, Any]:
        assert main(["slurm", str(recipe), "--out", str(out), "--parts", "3", "--json", *options]) == code
        said = capsys.readouterr()
        found: dict[str, Any] = json.loads(said.out.splitlines()[-1]) if code == 0 else {"said": said.err}
        return found

    return run


@pytest.mark.usefixtures("logs")
def test_no_name_of_a_stage_collides_with_that_of_a_script(recipe: Path, slurm: Slurm) -> None:
    block = recipe.read_text().partition("  pairs:")[2]
    recipe.write_text(f"{recipe.read_text()}\n  submit:{block}\n  finish:{block}\n")
    scripts = slurm("--dry-run")["scripts"]
    stages = [f"{stage}.{step}.sh" for stage in ("pairs", "submit", "finish") for step in ("plan", "parts")]
    assert [*scripts] == [*stages, "finish.sh", "submit.sh"]
    assert len(slurm()["jobs"]) == 7


def test_a_job_that_is_refused_ends_those_before_it(slurm: Slurm, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "2")
    assert "sbatch: error: no; nothing is submitted" in slurm(code=2)["said"]
    assert {*(logs / "scancel").read_text().split()} == {"1"}
    assert len((logs / "sbatch").read_text().splitlines()) == 2


@pytest.mark.usefixtures("built")
def test_media_that_appear_and_inputs_that_change_are_work(recipe: Path, slurm: Slurm, logs: Path) -> None:
    assert slurm()["jobs"] == {}
    out, media = recipe.parent / "out", recipe.parent / "images"
    (media / "2-0.png").rename(logs / "away")
    shutil.rmtree(out)
    lacking = ["--set", "max_missing=0.5"]
    assert main(["build", str(recipe), "--out", str(out), *lacking]) == 0
    assert slurm(*lacking)["jobs"] == {}
    (logs / "away").rename(media / "2-0.png")
    assert [*slurm(*lacking)["jobs"]] == ["pairs.plan", "pairs.parts", "finish"]
    assert "--array=1\n" in (out / "_slurm/pairs.parts.sh").read_text()
    assert main(["build", str(recipe), "--out", str(out), *lacking]) == 0
    lines = (recipe.parent / "pairs.jsonl").read_text()
    (recipe.parent / "pairs.jsonl").write_text(lines.replace("picture 5", "drawing 5"))
    slurm(*lacking)
    assert "--array=0-2\n" in (out / "_slurm/pairs.parts.sh").read_text()
    (recipe.parent / "pairs.jsonl").unlink()  # it may lie on the nodes alone
    assert len(slurm(*lacking)["jobs"]) == 3
    (recipe.parent / "pairs.jsonl").write_text(lines)
    assert slurm(*lacking)["jobs"] == {}
    (out / "pairs/README.md").unlink()
    assert [*slurm(*lacking)["jobs"]] == ["finish"]


@pytest.mark.usefixtures("logs")
def test_folders_may_have_strange_names(
    recipe: Path, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = tmp_path / """a b'c"d$e%f`g#h"""
    strange.mkdir()
    monkeypatch.chdir(strange)
    assert len(slurm(out=strange / "out")["jobs"]) == 3
    folder = strange / "out/_slurm"
    script = (folder / "pairs.parts.sh").read_text()
    assert (
        f"""#SBATCH --output="{strange.parent}/a b'c\\"d$e%%f`g#h/out/_slurm"/log/pairs.parts-%A_%a.out\n""" in script
    )
    done = subprocess.run(
        ["bash", folder / "pairs.parts.sh"],
        env={**os.environ, "SLURM_JOB_ID": "7", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    (why,) = (folder / "failed.txt").read_text().splitlines()
    assert done.returncode == 1 and why in done.stderr
    assert why.startswith("pairs.parts (job 7 on ") and "no twinset works on this node; name what activates" in why
    for name in ("a\nb", "a\\b"):
        assert "holds a line break or a backslash" in slurm(code=2, out=tmp_path / name)["said"]


DISK_FULL = "echo 'twinset: 1 of 2 failed. First:' >&2; echo 'pairs shard 00001: disk full' >&2; exit 1"


@pytest.fixture
def task(slurm: Slurm, logs: Path) -> Callable[..., tuple[str, str]]:
    """Run a task's script where a stand-in is ``twinset``; returns why it failed, as status shows it, and its log."""

    def run(words: str, shown: str = "", restarts: int = 2, log: str = "") -> tuple[str, str]:
        slurm("--cpus", "4", "--setup", 'twinset() { stand_in "$@"; }')
        folder = logs / "out/_slurm"
        script = (folder / "pairs.parts.sh").read_text()
        version = shown or next(one for one in script.split("'") if one.startswith("twinset "))
        body = f'[ "$1" != --version ] || {{ echo "{version}"; exit; }}; echo "$@"; {words}'
        command = f"stand_in() {{ ({body}) }}; export -f stand_in; SLURM_JOB_ID=7 bash {folder}/pairs.parts.sh"
        place = folder / "log/pairs.parts-7.out"
        place.write_text(log)
        with place.open("a") as stream:
            restarted = {**os.environ, "SLURM_RESTART_COUNT": str(restarts)}
            subprocess.run(["bash", "-c", command], stdout=stream, stderr=stream, env=restarted)
        (why,) = (folder / "failed.txt").read_text().splitlines()
        assert why.startswith("pairs.parts (job 7 on ") and why.endswith("then run the same twinset slurm again")
        return why, place.read_text()

    return run


def test_a_job_that_fails_says_why_in_one_line(task: Callable[..., tuple[str, str]]) -> None:
    assert "twinset 0 on this node, twinset " in task("", shown="twinset 0")[0]
    assert "pairs shard 00001: disk full; see " in task(DISK_FULL)[0]
    assert "lost its node or was preempted again; name another --partition" in task("", restarts=3)[0]
    memory, log = task("kill -9 $BASHPID")
    assert "killed, as for lack of memory, and begun 3 times; ask for more with --mem; see " in memory
    assert "--workers 4" in log


def test_a_task_that_was_killed_makes_one_shard_at_a_time(task: Callable[..., tuple[str, str]]) -> None:
    killed = "pairs.parts: killed, as for lack of memory; begun again with one shard at a time\n"
    assert "--workers 1" in task(DISK_FULL, log=killed)[1]


@pytest.mark.usefixtures("logs")
def test_scripts_of_somebody_else_are_not_replaced(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text("echo mine")
    slurm("--scripts", str(tmp_path))
    slurm("--scripts", str(tmp_path))
    assert (tmp_path / "mine.sh").read_text() == "echo mine"
    (tmp_path / "submit.sh").write_text("echo mine")
    assert "submit.sh: not written by twinset slurm" in slurm("--scripts", str(tmp_path), code=2)["said"]


@pytest.mark.usefixtures("logs")
def test_a_link_below_out_is_refused_and_one_that_is_named_is_not(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/_slurm").symlink_to(tmp_path / "elsewhere")
    assert "nothing is written through a link" in slurm(code=2)["said"]
    assert len(slurm("--scripts", str(tmp_path / "out/_slurm"))["jobs"]) == 3


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parts", "1002"], "--parts 1002: the arrays of this Slurm have at most 1,001 tasks (MaxArraySize)"),
        (["--time", "1:00:00\ntouch gone"], r"--time '1:00:00\ntouch gone': holds a line break; write it in one line"),
        (["--sbatch=--nice\rtouch gone"], "holds a line break"),
        (["--partition", "gpu=cpus"], "--partition gpu=cpus: Slurm has no partition 'cpus'; did you mean 'cpu'?"),
    ],
)
def test_what_slurm_does_not_have_is_refused(slurm: Slurm, options: list[str], said: str) -> None:
    assert said in slurm(*options, code=2)["said"]


def test_status_finds_why_jobs_failed(slurm: Slurm, logs: Path, tmp_path: Path) -> None:
    out, scripts = tmp_path / "out", tmp_path / "elsewhere"
    slurm("--scripts", str(scripts))
    (scripts / "failed.txt").write_bytes(b"pairs.parts (job 2_0 on \xff): no\n" * 30)
    states = slurm_states(str(out))
    assert states[0] == "pairs.parts (job 2_0 on \N{REPLACEMENT CHARACTER}): no"
    assert states[20:] == [f"and 10 more in {scripts}/failed.txt"]
    slurm()
    assert slurm_states(str(out)) == []
    (out / "_slurm/failed.txt").symlink_to(scripts / "failed.txt")
    assert slurm_states(str(out)) == []
    (out / "_slurm/failed.txt").unlink()
    os.mkfifo(out / "_slurm/failed.txt")
    assert slurm_states(str(out)) == []


def test_tasks_that_slurm_forgot_are_asked_of_the_accounting(slurm: Slurm, logs: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    slurm()
    assert slurm_states(out) == []  # no accounting here
    (logs / "queue").write_text(
        f"2_1\tpairs.parts\tRUNNING\tNone\t{comment_of(out)}-1\nx\ty\tz\tr\tother \xff\n", "latin-1"
    )
    (logs / "accounts").write_text(
        "1|COMPLETED|pairs.plan\n2_0|OUT_OF_MEMORY|pairs.parts\n2_1|RUNNING|pairs.parts\n2_2|COMPLETED|another|job\n"
        "2_3|CANCELLED by 1000|pairs.parts\n2_[4-6,9%2]|CANCELLED by 1000|pairs.parts\n3|PENDING|finish\nrubbish\n"
    )
    assert slurm_states(out) == [
        "Slurm: pairs.plan, job 1: 1 COMPLETED",
        "Slurm: pairs.parts, job 2: 5 CANCELLED, 1 OUT_OF_MEMORY, 1 RUNNING; a job that it needs failed, or somebody "
        "cancelled it; ask for more memory with --mem; then run the same twinset slurm again",
    ]
    assert "--parsable2 --noheader --allocations --jobs=1,2,3 -o JobID,State,JobName" in (logs / "sacct").read_text()


def test_states_of_the_last_submission_hide_earlier_ones(slurm: Slurm, logs: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    slurm()
    jobs = {3: "FAILED\tNonZeroExitCode", 9: "COMPLETED\tNone", 12: "PENDING\tDependency"}
    lines = [f"{one}\tfinish\t{state}\t{comment_of(out)}-1\n" for one, state in jobs.items()]
    (logs / "queue").write_text("".join(lines))
    assert slurm_states(out) == ["Slurm: finish, job 12: 1 PENDING (Dependency)"]
    (logs / "queue").write_text(lines[2].replace("Dependency", "PartitionTimeLimit"))
    [told] = slurm_states(out)
    assert "1 PENDING (PartitionTimeLimit); can never begin as they ask: scancel them" in told


def test_status_shows_jobs_before_anything_is_planned(
    slurm: Slurm, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    slurm()
    assert main(["status", out]) == 2
    (logs / "queue").write_text(f"1\tpairs.plan\tFAILED\tJobLaunchFailure\t{comment_of(out)}-1\n")
    assert main(["status", out]) == 0
    states, why = capsys.readouterr().out.splitlines()[-2:]
    assert states == "Slurm: pairs.plan, job 1: 1 FAILED (JobLaunchFailure)"
    assert why.startswith("pairs.plan (job 1): its script did not begin; see ")
    (tmp_path / "out/_slurm/log/pairs.plan-1.out").write_text("exceeded memory limit (9 > 6), being killed\nEnded\n")
    assert main(["status", out]) == 0
    assert "pairs.plan (job 1): Ended; ask for more memory with --mem; see " in capsys.readouterr().out
