"""Run benchmarks and write docs/benchmarks.md from what they tell.

    python tests/benchmarks/page.py [NAME ...] [--minutes N]

NAME: of some, without ``bench_``; the rows of the others stay, with the commit and date at which they were measured. A
benchmark that fails, or that takes longer than N minutes, is on the page with its last line. What stands on the page
lies in ``measured.json`` beside this file.
"""

import argparse
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
        rows, said = Path(folder, "rows"), Path(folder, "said")
        places = [str(ROOT / one) for one in ("src", "demo", ".")]
        environment = os.environ | {"TWINSET_BENCH_ROWS": str(rows), "PYTHONPATH": os.pathsep.join(places)}
        with said.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, *command],
                env=environment,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=seconds)
                failed = f"ended with exit code {code}" if code else ""
            except subprocess.TimeoutExpired:
                failed = f"stopped after {seconds:g} s"
                os.killpg(process.pid, signal.SIGKILL)  # its children, too
                process.wait()
        text = said.read_text().strip()
        print(text, flush=True)
        if failed:
            last = text.splitlines()[-1] if text else "it said nothing"
            failed = f"{failed}: {last.replace(str(ROOT.parent), '..')}"  # the page names no folder of this machine
        told = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    return {
        "rows": told,
        "failed": failed,
        "when": f"{datetime.now(UTC):%Y-%m-%d}, {commit.stdout.strip()}, load {load:.1f}",
        "machine": machine(),
    }


def page(stored: Mapping[str, Any]) -> str:
    """The page. stored: what was measured of each benchmark, and under ``gpu`` of each row of `gpu`."""
    here, on_gpu = {name: one for name, one in stored.items() if name != "gpu"}, stored.get("gpu", {})
    told = table(on_gpu) if on_gpu else "Not measured yet: no GPU.\n"
    return HEAD + table(here) + ON_A_GPU + told


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--minutes", type=float, default=30.0, help="that a benchmark may take (default 30)")
    asked = parser.parse_args()
    there = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    if unknown := sorted(set(asked.names) - set(there)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(there)}")
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    stored = {name: one for name, one in stored.items() if name in {*there, "gpu"}}
    failed = []
    for name in asked.names or there:
        print(f"== {name}", flush=True)
        stored[name] = measure([there[name]], 60 * asked.minutes)
        failed += [name] if stored[name]["failed"] else []
        STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        PAGE.write_text(page(stored))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; docs/benchmarks.md says why")


if __name__ == "__main__":
    main()
