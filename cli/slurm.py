"""``twinset slurm``: a build as Slurm's jobs, by scripts that a person can read and edit.

A planning job and an array of parts a stage, then a job that finishes: steps of `stages.making.in_parts`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import twinset
from twinset.cli.options import add_described, answer
from twinset.cli.terminal import say
from twinset.manifests.errors import BuildFailed, WrongUse, suggested

if TYPE_CHECKING:
    from twinset.manifests.recipe import Recipe
    from twinset.shards.storage.store import Store

TEMPLATES = Path(__file__).with_name("templates")
FOLDER = "_slurm"  # of the scripts, below OUT
REQUEUES = 2  # of a task that is preempted, loses its node or runs out of memory
POOLS = ("cpu", "render", "gpu")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"}


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job and its script, ``NAME.sh``.

    words: its command. asks: options of sbatch. after: numbers of the jobs that it needs. array: of its tasks, which
    are parts; empty for a job that is not an array.
    """

    name: str
    words: list[str]
    asks: dict[str, str]
    after: list[int] = field(default_factory=list)
    array: str = ""


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset``."""
    add_described(commands, "slurm", slurm, "recipe", "slurm")


def slurm(asked: argparse.Namespace) -> None:
    """``twinset slurm``."""
    recipe = twinset.load_recipe(asked.recipe, asked.set).only(asked.only)
    folder = _folder(asked)
    jobs = _jobs(recipe, asked)
    scripts = _scripts(jobs, recipe, asked, folder)
    if asked.dry_run:
        answer(asked, {"scripts": scripts}, lambda: say(*(f"# {n}\n{one}" for n, one in scripts.items()), sep="\n"))
        return
    _refuse_absent_partitions(asked.partition)
    if running := _running(asked.out, recipe):
        raise BuildFailed(running)
    if not jobs:
        answer(asked, {"jobs": {}}, lambda: say(f"{asked.out}: all is made; nothing to submit"))
        return
    (folder / "log").mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.sh"):
        left.unlink()
    for name, text in scripts.items():
        (folder / name).write_text(text)
    done = subprocess.run(["bash", str(folder / "submit.sh")], capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().replace("\n", "; ")
        raise WrongUse(f"{folder}/submit.sh: {why}; nothing is submitted: correct it, and run the same command again")
    ids = {name: number for number, name in (line.split(" ", 1) for line in done.stdout.splitlines())}
    answer(
        asked, {"jobs": ids}, lambda: say(*(f"{n}: job {i}" for n, i in ids.items()), f"scripts: {folder}", sep="\n")
    )


def slurm_states(out: str) -> list[str]:
    """Lines on the jobs that Slurm knows for OUT, and on those that failed, for ``twinset status``."""
    states: dict[str, Counter[str]] = {}
    ids: dict[str, str] = {}
    for number, name, state, _ in _queue(out):
        states.setdefault(name, Counter())[state] += 1
        ids[name] = number.partition("_")[0]
    lines = [
        f"Slurm: {name}, job {ids[name]}: {', '.join(f'{count} {state}' for state, count in sorted(found.items()))}"
        for name, found in states.items()
    ]
    failed = Path(out, FOLDER, "failed.txt")
    return lines + (failed.read_text("utf-8").splitlines() if failed.is_file() else [])


def _folder(asked: argparse.Namespace) -> Path:
    """Where the scripts and logs lie."""
    if asked.scripts is not None:
        return Path(os.path.abspath(asked.scripts))
    if "://" in asked.out:
        raise WrongUse(f"{asked.out}: name a folder of all nodes for the scripts and logs with --scripts DIR")
    return Path(os.path.abspath(asked.out), FOLDER)


def _jobs(recipe: Recipe, asked: argparse.Namespace) -> list[SlurmJob]:
    """The jobs for what has no receipt; none where all is made."""
    from twinset.shards.storage.store import Store

    out = asked.out if "://" in asked.out else os.path.abspath(asked.out)
    store, jobs, arrays = Store(out), list[SlurmJob](), dict[str, int]()
    command = ["twinset", "build", asked.recipe, "--out", out]
    command += [word for name in asked.only for word in ("--only", name)]
    command += [word for one in asked.set for word in ("--set", one)]
    done = True
    for name, stage in recipe.all.items():
        reads = [arrays[one] for one in recipe.reads(name) if one in arrays]
        parts = None if reads else _parts_to_make(store, recipe, name, asked.parts)
        if parts == []:
            continue
        array = f"0-{asked.parts - 1}" if parts is None else ",".join(map(str, parts))
        array += f"%{asked.at_a_time}" if asked.at_a_time else ""
        said = [*command, "--stage", name]
        jobs.append(SlurmJob(f"{name}.plan", [*said, "--plan-only"], _asks(asked, "cpu"), reads))
        jobs.append(SlurmJob(name, said, _asks(asked, stage.pool), [len(jobs) - 1], array))
        arrays[name], done = len(jobs) - 1, False
    if done and all(store.size(f"{name}/README.md") is not None for name in recipe.subsets):
        return []
    return [*jobs, SlurmJob("finish", [*command, "--finish"], _asks(asked, "cpu"), list(arrays.values()))]


def _parts_to_make(store: Store, recipe: Recipe, name: str, parts: int) -> list[int] | None:
    """The parts of a stage that lack a receipt; None for all, where nothing is planned, or another recipe."""
    from twinset.manifests.recipe import content_of
    from twinset.shards.records import read_stage
    from twinset.stages.making.in_parts import Shards
    from twinset.stages.status import state_of

    home = recipe.home(name)
    stage = read_stage(store, home)
    if stage is None or stage.facts["settings"] != content_of(recipe[name], recipe.seed):
        return None
    if stage.count != recipe[name].count:
        return None
    todo = set(state_of(store, home).todo)
    return [part for part in range(parts) if todo & {*Shards(part, parts=parts).of(name, stage.shards)}]


def _asks(asked: argparse.Namespace, pool: str) -> dict[str, str]:
    """Options of sbatch for the jobs of a pool."""
    given = {name: _of_pool(getattr(asked, name), pool) for name in ("partition", "time", "mem", "gres")}
    if pool == "gpu" and not given["gres"]:
        given["gres"] = "gpu:1"
    return {name: value for name, value in given.items() if value and (name != "gres" or pool == "gpu")}


def _of_pool(given: list[str], pool: str) -> str:
    """The value for a pool: the last ``POOL=VALUE``, else the last ``VALUE``, else nothing."""
    values = dict(_by_pool(one) for one in given)
    return values.get(pool, values.get("", ""))


def _by_pool(given: str) -> tuple[str, str]:
    """Pool, empty for all, and value of ``[POOL=]VALUE``."""
    pool, equals, value = given.partition("=")
    return (pool, value) if equals and pool in POOLS else ("", given)


def _scripts(jobs: list[SlurmJob], recipe: Recipe, asked: argparse.Namespace, folder: Path) -> dict[str, str]:
    """The scripts by name."""
    import jinja2

    settings = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    settings.filters["q"] = shlex.quote
    shared = {
        "comment": _comment(asked.out, recipe),
        "folder": str(folder),
        "here": os.getcwd(),
        "setup": asked.setup,
        "cpus": asked.cpus,
        "parts": asked.parts,
        "options": asked.sbatch,
        "requeues": REQUEUES,
    }
    job, submit = (settings.get_template(f"slurm_{name}.sh.j2") for name in ("job", "submit"))
    scripts = {f"{one.name}.sh": job.render(job=one, **shared) for one in jobs}
    return {**scripts, "submit.sh": submit.render(jobs=jobs, folder=str(folder))}


def _comment(out: str, recipe: Recipe | None = None) -> str:
    """What tells the jobs of a build from all others: digests of OUT, and of the recipe."""
    place = out if "://" in out else os.path.realpath(out)
    words = [place] if recipe is None else [place, recipe.model_dump_json()]
    return "-".join(["twinset", *(hashlib.sha256(word.encode()).hexdigest()[:12] for word in words)])


def _queue(out: str) -> list[tuple[str, ...]]:
    """Id, name, state and comment of every job that Slurm knows for OUT, a line a task; none without Slurm."""
    if shutil.which("squeue") is None:
        return []
    format = "%i\t%j\t%T\t%k"
    done = subprocess.run(["squeue", "-h", "-r", "-t", "all", "-o", format], capture_output=True, text=True)
    if done.returncode and Path(out, FOLDER).is_dir():
        say(f"squeue: {done.stderr.strip()}; states of jobs are not known", file=sys.stderr)
    found = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    return [one for one in found if len(one) == 4 and one[3].startswith(_comment(out))]


def _running(out: str, recipe: Recipe) -> str:
    """What to do about the jobs that have not ended in OUT; empty without any."""
    open_jobs = [one for one in _queue(out) if one[2] not in ENDED]
    if not open_jobs:
        return ""
    ids = " ".join(sorted({one[0].partition("_")[0] for one in open_jobs}, key=int))
    names = ", ".join(dict.fromkeys(one[1] for one in open_jobs))
    if any(one[3] != _comment(out, recipe) for one in open_jobs):
        other = f"{out}: jobs of another recipe or other settings write here ({names})"
        return f"{other}; scancel {ids}, or name another --out"
    return f"{out}: its jobs have not ended ({names}); follow them with twinset status {out}, or scancel {ids}"


def _refuse_absent_partitions(given: list[str]) -> None:
    """Raise `WrongUse` where Slurm is absent, or has no such partition."""
    if shutil.which("sbatch") is None:
        raise WrongUse("sbatch: not found; run this where Slurm's commands are, or print the scripts with --dry-run")
    done = subprocess.run(["sinfo", "-h", "-o", "%R"], capture_output=True, text=True)
    if done.returncode:
        raise BuildFailed(f"sinfo: {done.stderr.strip()}; run the same command again once Slurm answers")
    known = done.stdout.split()
    for one in given:
        for name in _by_pool(one)[1].split(","):
            if name not in known:
                raise WrongUse(f"--partition {one}: Slurm has no partition {name!r}; {suggested(name, known)}")
