"""``twinset slurm``: a build as Slurm's jobs, by a short script that a person reads and edits."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from twinset.cli.command import Only, Place, Recipe, Settings, answer
from twinset.cli.terminal import say
from twinset.contracts.errors import WrongUse

POOLS = ("cpu", "render", "gpu")
SUBMIT = """#!/bin/bash
# Submits the jobs of a build, each after those that it needs. Prints their numbers and names.
set -e
cd {folder}
mkdir -p log
declare -A job
submit() {{  # NAME, OPTION of sbatch ...
    id=$(sbatch --parsable --job-name="$1" --cpus-per-task={cpus} --requeue --kill-on-invalid-dep=yes "${{@:2}}")
    job[$1]=${{id%%;*}}
    echo "${{job[$1]}} $1"
}}
"""


def slurm(
    recipe: Recipe,
    *,
    out: Place,
    only: Only = (),
    set_: Settings = (),
    partition: tuple[str, ...] = (),
    time: tuple[str, ...] = (),
    mem: tuple[str, ...] = (),
    sbatch: tuple[str, ...] = (),
    cpus: Annotated[int, typer.Option(min=1, max=65_536)] = 1,
    parts: Annotated[int, typer.Option(min=1, max=100_000)] = 16,
    at_a_time: Annotated[int, typer.Option(min=0, max=100_000)] = 0,
    setup: str = "",
    scripts: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Build a recipe with Slurm: a planning job and an array of parts a stage, and a job that finishes.

    The same command again submits what has no receipt.

    Args:
        out: folder of all nodes, or fsspec URL, of the dataset
        partition: P or POOL=P: partition of all jobs, or of the stages of a pool: cpu, render or gpu
        time: TIME or POOL=TIME: limit of a task, as sbatch takes it
        mem: SIZE or POOL=SIZE: memory of a task, such as 8G
        sbatch: another option of sbatch, such as --sbatch=--account=lab
        cpus: cores of a task, which makes as many shards at a time
        parts: tasks of a stage's array
        at_a_time: the most tasks of an array that run at a time; 0: all
        setup: shell command that activates the environment on a node, such as '. .venv/bin/activate'
        scripts: folder of the script and logs (default: OUT/_slurm)
        dry_run: print the script, write and submit nothing
    """
    import twinset
    from twinset.shards.storage.spool import refuse_link
    from twinset.shards.storage.store import Store
    from twinset.stages.in_parts import unmade_parts
    from twinset.stages.job import Job

    loaded = twinset.load_recipe(recipe, set_).only(only)
    if scripts is None and "://" in out:
        raise WrongUse(f"{out}: name a folder of all nodes for the script and logs with --scripts DIR")
    out = out if "://" in out else os.path.abspath(out)
    folder = Path(os.path.abspath(scripts or Path(out, "_slurm")))
    if (unmade := unmade_parts(Job(loaded, Store(out)), parts)) is None:
        return answer({"jobs": {}, "made": f"all of {out}: there is nothing to submit"})
    build = ["twinset", "build", recipe, "--out", out]
    build += [word for name in only for word in ("--only", name)] + [word for text in set_ for word in ("--set", text)]
    given = {"partition": partition, "time": time, "mem": mem, "gres": ("gpu=gpu:1",)}
    lines = [SUBMIT.format(folder=shlex.quote(str(folder)), cpus=cpus)]

    def submit(name: str, pool: str, words: Sequence[str], after: Sequence[str], array: str = "") -> None:
        log = "log/%x-%A_%a.out" if array else "log/%x-%j.out"
        asked = [f"--{option}={value}" for option, values in given.items() if (value := _of_pool(values, pool))]
        steps = [f"cd {shlex.quote(os.getcwd())}", *filter(None, [setup]), shlex.join([*build, *words])]
        part = f' --part "$SLURM_ARRAY_TASK_ID/{parts}" --workers {cpus}' if array else ""
        wrapped = ["--wrap", " && ".join(steps) + part]
        line = ["submit", name, *asked, *sbatch, f"--output={log}", *([f"--array={array}"] if array else []), *wrapped]
        needed = "".join(f":${{job[{earlier}]}}" for earlier in after)
        lines.append(shlex.join(line) + (f" --dependency=afterok{needed}" if needed else ""))

    for name, left in unmade.items():
        array = ",".join(map(str, left)) if len(left) < parts else f"0-{parts - 1}"
        array += f"%{at_a_time}" if at_a_time else ""
        reads = [f"{read}.parts" for read in loaded.reads(name) if read in unmade]
        submit(f"{name}.plan", "cpu", ["--stage", name, "--plan-only"], reads)
        submit(f"{name}.parts", loaded[name].pool, ["--stage", name], [f"{name}.plan"], array)
    submit("finish", "cpu", ["--finish"], [f"{name}.parts" for name in unmade])
    script = "\n".join([*lines, ""])
    if dry_run:
        return answer({"script": script}, lambda: say(script, end=""))
    refuse_link(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "submit.sh").write_bytes(os.fsencode(script))
    done = subprocess.run(["bash", str(folder / "submit.sh")], capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        why = done.stderr.strip().replace("\n", "; ")
        raise WrongUse(
            f"{folder}/submit.sh: {why}; scancel what it submitted, correct it, and run the same command again"
        )
    jobs = {name: number for number, name in (line.split(" ", 1) for line in done.stdout.splitlines())}
    answer({"jobs": jobs, "script": folder / "submit.sh"})


def _of_pool(given: Sequence[str], pool: str) -> str:
    """The value for a pool: the last ``POOL=VALUE``, else the last ``VALUE``, else nothing."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if equals and name not in POOLS:
            raise WrongUse(f"{text}: there is no pool {name}; name one of {', '.join(POOLS)}")
        values |= {name: value} if equals else {"": text}
    return values.get(pool, values.get("", ""))
