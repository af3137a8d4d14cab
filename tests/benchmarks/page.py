"""Run benchmarks and write docs/benchmarks.md from what they tell.

    python -m tests.benchmarks.page [NAME ...] [--minutes N]

NAME: of some, without ``bench_``; the rows of the others stay, with the commit and date at which they were measured. A
benchmark that fails, or that takes longer than N minutes, is on the page with its last line. What stands on the page
lies in ``measured.json`` beside this file.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.measured import ROWS
from tests.options import options

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORED, PAGE = HERE / "measured.json", ROOT / "docs" / "benchmarks.md"
SHOWN = ("numpy", "pyarrow", "torch", "av", "spacy", "prefect")
HEAD = """# Benchmarks

How much faster than the naive or published way that ran beside: the median of a run's rounds (least–greatest). This
measures two again and writes the page:

    make bench NAMES="kubric video"

"""
ON_A_GPU = """
## On a GPU

Written by `make gpu`, in eight minutes: networks of real size with random weights.

"""
COLUMNS = "| `tests/benchmarks/bench_*.py` | against | ratio |\n| --- | --- | --- |\n"


def machine() -> str:
    """Processor, cores, memory and versions; not the name of the host."""
    cpus = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
    memory = psutil.virtual_memory().total / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in SHOWN)
    processor = names[0] if names else platform.machine()
    return f"{processor}, {psutil.cpu_count()} cores, {memory:.0f} GiB; Python {platform.python_version()}, {versions}"


def measure(command: Sequence[str | Path], seconds: float) -> dict[str, Any]:
    """The rows of one benchmark, and how it ended. command: arguments of Python."""
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        rows, log = Path(folder, "rows"), Path(folder, "log")
        path = os.pathsep.join(str(ROOT / place) for place in ("src", "demo", "."))
        environment = os.environ | {ROWS: str(rows), "PYTHONPATH": path}
        with log.open("w") as output:
            asked = [sys.executable, *command]
            process = subprocess.Popen(
                asked, env=environment, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
            )
            try:
                code = process.wait(timeout=seconds)
                failed = f"ended with exit code {code}" if code else ""
            except subprocess.TimeoutExpired:
                failed = f"stopped after {seconds:g} s"
                os.killpg(process.pid, signal.SIGKILL)  # its children, too
                process.wait()
        text = log.read_text().strip()
        print(text, flush=True)
        if failed:
            last = text.splitlines()[-1] if text else "it said nothing"
            failed = f"{failed}: {last.replace(str(ROOT.parent), '..')}"  # the page names no folder of this machine
        measured = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    return {
        "rows": measured,
        "failed": failed,
        "when": f"{datetime.now(UTC):%Y-%m-%d}, {commit.stdout.strip()}, load {load:.1f}",
        "machine": machine(),
    }


def page(stored: Mapping[str, Any]) -> str:
    """The page. stored: what was measured of each benchmark, and under ``gpu`` of each row of `gpu`."""
    here = {name: benchmark for name, benchmark in stored.items() if name != "gpu"}
    on_gpu = stored.get("gpu", {})
    of_gpu = table(on_gpu) if on_gpu else "Not measured yet: no GPU.\n"
    return HEAD + table(here) + ON_A_GPU + of_gpu


def table(stored: Mapping[str, Any]) -> str:
    """Rows, then each machine with the benchmarks that it measured, their dates and commits."""
    lines = []
    machines: dict[str, dict[str, list[str]]] = {}
    for name, benchmark in sorted(stored.items()):
        when, machine = benchmark["when"].partition(", load")[0], benchmark["machine"].partition("; Python")[0]
        machines.setdefault(machine, {}).setdefault(when, []).append(name)
        for row in benchmark["rows"]:
            figures = "; ".join(filter(None, [row["ratio"], row["more"]]))
            cells = f"`{name}`: {row['what']}", row["against"], figures
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
        if benchmark["failed"] or not benchmark["rows"]:
            failed = benchmark["failed"] or "it told no figure"
            lines.append(f"| `{name}` | | {failed.replace('|', ' ')} |\n")
    lines.append("\nMeasured on (`measured.json` has versions and loads):\n\n")
    for machine, runs in machines.items():
        lines.append(f"- {machine}\n")
        lines += [f"  - {when}: {', '.join(names)}\n" for when, names in sorted(runs.items())]
    return COLUMNS + "".join(lines)


def keep(name: str, measured: Mapping[str, Any], on_gpu: bool = False) -> None:
    """Write what was measured of a benchmark, or of a row of `gpu`, into both files."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    if on_gpu:
        stored["gpu"] = {**stored.get("gpu", {}), name: measured}
    else:
        stored = {kept: benchmark for kept, benchmark in stored.items() if kept in {*benchmarks(), "gpu"}} | {
            name: measured
        }
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    PAGE.write_text(page(stored))


def benchmarks() -> list[str]:
    """The names of all, without ``bench_``."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def main() -> None:
    given = options(__doc__, benchmarks(), minutes=15.0)
    failed = []
    for name in given.names:
        print(f"== {name}", flush=True)
        measured = measure(["-m", f"tests.benchmarks.bench_{name}"], 60 * given.minutes)
        failed += [name] if measured["failed"] else []
        keep(name, measured)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; docs/benchmarks.md says why")


if __name__ == "__main__":
    main()
