"""What Slurm says: the jobs of a build and their states, and which partitions and arrays it has."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from twinset.cli.terminal import say
from twinset.contracts.errors import BuildFailed, WrongUse, suggested
from twinset.contracts.locations import cache_folder

if TYPE_CHECKING:
    from twinset.contracts.recipe import Recipe

FOLDER = "_slurm"  # of the scripts, below OUT
#: Beside the scripts: ids and names of the jobs that were submitted last, and why jobs failed.
JOBS, FAILED = "jobs.txt", "failed.txt"
REASONS = 20  # why jobs failed, the most lines that are shown
LONGEST = 100_000  # bytes of such a file, and of a log, that are read, from its end
#: What to do about a task that Slurm ended; of FAILED its script says more.
REMEDIES = {
    "OUT_OF_MEMORY": "ask for more memory with --mem",
    "TIMEOUT": "ask for more time with --time, or for smaller parts with --parts",
    "DEADLINE": "ask for more time with --time, or for smaller parts with --parts",
    "PREEMPTED": "ask for another partition with --partition",
    "NODE_FAIL": "its node was lost",
    "BOOT_FAIL": "its node did not start",
    "CANCELLED": "a job that it needs failed, or somebody cancelled it",
}
NEVER = dict.fromkeys(
    ("BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit"),
    "can never begin as they ask: scancel them, correct --partition, --time or --mem",
)
AGAIN = "then run the same twinset slurm again"
ENDED = {"COMPLETED", "FAILED", *REMEDIES}


class Task(NamedTuple):
    """A job, or a task of an array.

    id: such as ``12_3``. reason: of its state, as Slurm says it. comment: `comment_of` its build.
    """

    id: str
    name: str
    state: str
    reason: str = ""
    comment: str = ""

    @property
    def job(self) -> int:
        """The number of its job or array."""
        return int(self.id.partition("_")[0])

    @property
    def shown(self) -> str:
        """Its state and the reason of it."""
        return f"{self.state} ({self.reason})" if self.reason not in ("", "None") else self.state

    @property
    def tasks(self) -> int:
        """Of how many tasks it tells: those of an array that never began are told together, as ``12_[0-3,7%2]``."""
        listed = self.id.partition("[")[2].partition("%")[0]
        spans = re.findall(r"(\d+)(?:-(\d+))?", listed)
        return sum(int(last or first) - int(first) + 1 for first, last in spans) or 1


def slurm_states(out: str) -> list[str]:
    """Lines on the jobs that Slurm knows for OUT, and on those that failed, for ``twinset status``."""
    folder = _remembered(out)
    submitted, why = dict(_submitted(folder)), _lines_of(folder, FAILED)
    tasks = {one.id: one for one in [*_accounted(submitted), *_queue(out)] if one.id.partition("_")[0].isdigit()}
    newest: dict[str, int] = {}
    for one in sorted(tasks.values(), key=lambda one: one.job):
        newest[one.name] = one.job
    lines = []
    for name, job in sorted(newest.items(), key=lambda one: one[1]):
        of_it = [one for one in tasks.values() if (one.name, one.job) == (name, job)]
        shown = Counter[str]()
        for one in of_it:
            shown[one.shown] += one.tasks
        said = ", ".join(f"{count} {state}" for state, count in sorted(shown.items()))
        known, found = REMEDIES | NEVER, sorted({word for one in of_it for word in (one.state, one.reason)})
        todo = [known[word] for word in found if word in known]
        again = [AGAIN] if todo else []
        lines.append("; ".join([f"Slurm: {name}, job {job}: {said}", *dict.fromkeys(todo), *again]))
        unsaid = [
            one for one in of_it if one.state == "FAILED" and not any(f"(job {one.id} on" in line for line in why)
        ]
        why += [_last_words(folder, one) for one in unsaid if folder]
    more = [f"and {len(why) - REASONS:,} more in {folder / FAILED}"] if folder and len(why) > REASONS else []
    return [*lines, *why[:REASONS], *more]


def _last_words(folder: Path, task: Task) -> str:
    """Why a task failed that Slurm ended before its script could say so, as its log ends."""
    last = _lines_of(folder / "log", log := f"{task.name}-{task.id}.out")[-3:]
    said = [last[-1].strip() if last else "its script did not begin"]
    if any("memory limit" in line.lower() or "oom" in line.lower() for line in last):
        said.append(REMEDIES["OUT_OF_MEMORY"])
    return "; ".join([f"{task.name} (job {task.id}): {said[0]}", *said[1:], f"see {folder}/log/{log}", AGAIN])


def remember(out: str, folder: Path) -> None:
    """Have ``twinset status`` of this user find the scripts of a build that do not lie below OUT."""
    pointer = _pointer(out)
    if folder == _below(out):
        pointer.unlink(missing_ok=True)
        return
    pointer.parent.mkdir(parents=True, exist_ok=True)
    pointer.write_bytes(os.fsencode(folder))


def comment_of(out: str, recipe: Recipe | None = None) -> str:
    """What tells the jobs of a build from all others: digests of OUT, and of the recipe."""
    place = out if "://" in out else os.path.realpath(out)
    words = [place] if recipe is None else [place, recipe.model_dump_json()]
    return "-".join(["twinset", *(hashlib.sha256(word.encode()).hexdigest()[:12] for word in words)])


def running(out: str, recipe: Recipe) -> str:
    """What to do about the jobs that have not ended in OUT; empty without any."""
    open_jobs = [one for one in _queue(out) if one.state not in ENDED]
    if not open_jobs:
        return ""
    ids = " ".join(map(str, sorted({one.job for one in open_jobs})))
    names = ", ".join(dict.fromkeys(one.name for one in open_jobs))
    if any(one.comment != comment_of(out, recipe) for one in open_jobs):
        other = f"{out}: jobs of another recipe or other settings write here ({names})"
        return f"{other}; scancel {ids}, or name another --out"
    return f"{out}: its jobs have not ended ({names}); follow them with twinset status {out}, or scancel {ids}"


def refuse_absent(partitions: Sequence[tuple[str, str]], parts: int) -> None:
    """Raise `WrongUse` where Slurm is absent, or has no such partition, or no arrays of as many tasks.

    partitions: as the user wrote them, and their names with commas between them.
    """
    if shutil.which("sbatch") is None:
        raise WrongUse("sbatch: not found; run this where Slurm's commands are, or print the scripts with --dry-run")
    done = _asked("sinfo", "-h", "-o", "%R")
    if done.returncode:
        raise BuildFailed(f"sinfo: {done.stderr.strip()}; run the same command again once Slurm answers")
    known = done.stdout.split()
    for given, names in partitions:
        for name in names.split(","):
            if name not in known:
                raise WrongUse(f"--partition {given}: Slurm has no partition {name!r}; {suggested(name, known)}")
    most = re.search(r"^MaxArraySize\s*=\s*(\d+)", _asked("scontrol", "show", "config").stdout, re.MULTILINE)
    if most and parts > int(most[1]):
        raise WrongUse(
            f"--parts {parts}: the arrays of this Slurm have at most {int(most[1]):,} tasks (MaxArraySize); write as "
            "many or fewer, each then makes more shards"
        )


def _asked(*command: str) -> subprocess.CompletedProcess[str]:
    """What a command of Slurm's prints; names and comments of other people's jobs may hold anything."""
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")


def _queue(out: str) -> list[Task]:
    """Every job that Slurm itself still knows for OUT, a line a task; none without Slurm."""
    if shutil.which("squeue") is None:
        return []
    done = _asked("squeue", "-h", "-r", "-t", "all", "-o", "%i\t%j\t%T\t%r\t%k")
    if done.returncode and _remembered(out) is not None:
        say(f"squeue: {done.stderr.strip()}; states of jobs are not known", file=sys.stderr)
    found = [line.split("\t") for line in done.stdout.splitlines()]
    return [Task(*one) for one in found if len(one) == 5 and one[4].startswith(comment_of(out))]


def _accounted(submitted: dict[str, str]) -> Iterator[Task]:
    """Tasks that ended, of jobs by id, as the accounting remembers them; none without accounting.

    It may know no comments (AccountingStoreFlags), so that jobs are asked for by their numbers, which Slurm can give
    again: other names are of other jobs.
    """
    if not submitted or shutil.which("sacct") is None:
        return
    ids = ",".join(submitted)
    done = _asked("sacct", "--parsable2", "--noheader", "--allocations", f"--jobs={ids}", "-o", "JobID,State,JobName")
    for line in done.stdout.splitlines():
        number, said, name = [*line.split("|", 2), "", ""][:3]
        state = said.partition(" ")[0]  # CANCELLED by 1000
        if state in ENDED and submitted.get(number.partition("_")[0]) == name:
            yield Task(number, name, state)


def _submitted(folder: Path | None) -> Iterator[tuple[str, str]]:
    """Ids and names of the jobs that were submitted last."""
    for line in _lines_of(folder, JOBS):
        if found := re.fullmatch(r"(\d{1,18}) ([A-Za-z0-9.-]+)", line, re.ASCII):
            yield found[1], found[2]


def _below(out: str) -> Path | None:
    """Where scripts lie without ``--scripts``; nowhere for a URL."""
    return None if "://" in out else Path(os.path.abspath(out), FOLDER)


def _pointer(out: str) -> Path:
    return cache_folder() / "slurm" / comment_of(out)


def _remembered(out: str) -> Path | None:
    """The folder of the scripts that were written last for OUT, where there is one."""
    try:
        return Path(os.fsdecode(_pointer(out).read_bytes()))
    except OSError:
        below = _below(out)
        return below if below is not None and below.is_dir() and not below.is_symlink() else None


def _lines_of(folder: Path | None, name: str) -> list[str]:
    """The lines of a small file that lies beside the scripts; none of what a link leads to, or of a pipe."""
    if folder is None:
        return []
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        stream.seek(max(0, os.fstat(descriptor).st_size - LONGEST))
        return stream.read(LONGEST).decode("utf-8", "replace").splitlines()
