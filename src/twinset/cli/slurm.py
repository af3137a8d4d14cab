"""``twinset slurm``: a build as Slurm's jobs, by scripts that a person can read and edit.

A planning job and an array of parts a stage, then a job that finishes: steps of `stages.making.in_parts`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import twinset
from twinset.cli.options import add_described, answer
from twinset.cli.slurm_states import FAILED, FOLDER, JOBS, comment_of, refuse_absent, remember, running
from twinset.cli.terminal import say
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.spool import refuse_link

if TYPE_CHECKING:
    from twinset.contracts.recipe import Recipe

TEMPLATES = Path(__file__).with_name("templates")
WRITTEN = "written by twinset slurm"  # in the first lines of its scripts
REQUEUES = 2  # of a task that is preempted, loses its node or runs out of memory
POOLS = ("cpu", "render", "gpu")
LONGEST_LIST = 4000  # characters of an array's tasks; sbatch reads some 8,000 of a line


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
    _refuse_lines(asked)
    if not asked.dry_run:
        refuse_absent([(one, _by_pool(one)[1]) for one in asked.partition], asked.parts)
        if problem := running(asked.out, recipe):
            raise BuildFailed(problem)
    jobs = _jobs(recipe, asked)
    scripts = _scripts(jobs, recipe, asked, folder)
    if asked.dry_run:
        answer(asked, {"scripts": scripts}, lambda: say(*(f"# {n}\n{one}" for n, one in scripts.items()), sep="\n"))
        return
    if not jobs:
        answer(asked, {"jobs": {}}, lambda: say(f"{asked.out}: all is made; nothing to submit"))
        return
    _write(scripts, folder)
    remember(asked.out, folder)
    done = subprocess.run(["bash", str(folder / "submit.sh")], capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        why = done.stderr.strip().replace("\n", "; ")
        raise WrongUse(f"{folder}/submit.sh: {why}; nothing is submitted: correct it, and run the same command again")
    ids = {name: number for number, name in (line.split(" ", 1) for line in done.stdout.splitlines())}
    answer(
        asked, {"jobs": ids}, lambda: say(*(f"{n}: job {i}" for n, i in ids.items()), f"scripts: {folder}", sep="\n")
    )


def _folder(asked: argparse.Namespace) -> Path:
    """Where the scripts and logs lie."""
    if asked.scripts is None and "://" in asked.out:
        raise WrongUse(f"{asked.out}: name a folder of all nodes for the scripts and logs with --scripts DIR")
    folder = Path(os.path.abspath(asked.scripts or Path(asked.out, FOLDER)))
    if {"\n", "\\"} & {*str(folder)}:
        raise WrongUse(f"{str(folder)!r}: holds a line break or a backslash, which sbatch cannot take; name another")
    if asked.scripts is None:  # an OUT may come from somebody else
        refuse_link(folder)
        refuse_link(folder / "log")
    return folder


def _write(scripts: dict[str, str], folder: Path) -> None:
    """Write the scripts in place of those of an earlier submission; raises `WrongUse` where others would be lost."""
    (folder / "log").mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.sh"):
        if WRITTEN in left.read_bytes()[:200].decode(errors="replace"):
            left.unlink()
        elif left.name in scripts:
            raise WrongUse(f"{left}: not written by twinset slurm; name another folder with --scripts, or move it away")
    for name, text in scripts.items():
        (folder / name).write_bytes(os.fsencode(text))


def _jobs(recipe: Recipe, asked: argparse.Namespace) -> list[SlurmJob]:
    """The jobs for what has no receipt; none where all is made."""
    from twinset.stages.making.in_parts import unmade_parts

    out = asked.out if "://" in asked.out else os.path.abspath(asked.out)
    unmade = unmade_parts(recipe, out, asked.parts)
    if unmade is None:
        return []
    jobs, arrays = list[SlurmJob](), dict[str, int]()
    command = ["twinset", "build", asked.recipe, "--out", out]
    command += [word for name in asked.only for word in ("--only", name)]
    command += [word for one in asked.set for word in ("--set", one)]
    for name, parts in unmade.items():
        reads = [arrays[one] for one in recipe.reads(name) if one in arrays]
        said = [*command, "--stage", name]
        array = _spans(parts, asked.parts) + (f"%{asked.at_a_time}" if asked.at_a_time else "")
        jobs.append(SlurmJob(f"{name}.plan", [*said, "--plan-only"], _asks(asked, "cpu"), reads))
        jobs.append(SlurmJob(f"{name}.parts", said, _asks(asked, recipe[name].pool), [len(jobs) - 1], array))
        arrays[name] = len(jobs) - 1
    return [*jobs, SlurmJob("finish", [*command, "--finish"], _asks(asked, "cpu"), list(arrays.values()))]


def _spans(numbers: Sequence[int], parts: int) -> str:
    """Numbers as sbatch takes them, such as ``0-3,7``; all parts where that is too long for it."""
    known, said = {*numbers}, list[str]()
    for first in numbers:
        if first - 1 not in known:
            last = next(one for one in itertools.count(first) if one + 1 not in known)
            said.append(f"{first}-{last}" if last > first else f"{first}")
    return ",".join(said) if len(",".join(said)) < LONGEST_LIST else f"0-{parts - 1}"


def _refuse_lines(asked: argparse.Namespace) -> None:
    """Raise `WrongUse` for an option of sbatch with a line break, whose rest would be a line of the script."""
    for name in ("partition", "time", "mem", "gres", "sbatch"):
        if broken := next((one for one in getattr(asked, name) if len(one.splitlines()) > 1 or "\n" in one), None):
            raise WrongUse(f"--{name} {broken!r}: holds a line break; write it in one line")


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
    settings.filters["quoted"] = lambda text: (
        '"' + text.replace('"', r"\"").replace("%", "%%") + '"'
    )  # as sbatch reads it
    shared = {
        "comment": comment_of(asked.out, recipe),
        "folder": str(folder),
        "version": f"twinset {version('twinset')}",
        "here": os.getcwd(),
        "setup": asked.setup,
        "cpus": asked.cpus,
        "parts": asked.parts,
        "options": asked.sbatch,
        "requeues": REQUEUES,
        "written": WRITTEN,
        "failed": FAILED,
    }
    job, submit = (settings.get_template(f"slurm_{name}.sh.j2") for name in ("job", "submit"))
    scripts = {f"{one.name}.sh": job.render(job=one, **shared) for one in jobs}
    return {**scripts, "submit.sh": submit.render(jobs=jobs, jobs_file=JOBS, **shared)}
