"""A row of the page of benchmarks, told by the benchmark that measured it."""

import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

ROWS = "TWINSET_BENCH_ROWS"  # environment variable: the file that rows are added to; absent: they are only printed


def row(what: str, against: str, ratios: Sequence[float], more: str = "", unit: str = "×") -> None:
    """Print a row, and add it to the page where `page` runs this benchmark.

    Args:
        what, against: what was measured, and the naive or published way that ran beside it.
        ratios: of each round of this run, so that the spread is seen; one where there is one round.
        more: what else was measured, such as memory.
        unit: ``×`` (how many times as long the other way takes) or what ``ratios`` are otherwise.
    """
    middle = _number(statistics.median(ratios))
    spread = f" ({_number(min(ratios))}–{_number(max(ratios))})" if len(ratios) > 1 else ""
    print(f"{what} | {against} | {middle} {unit}{spread} | {more}", flush=True)
    tell(what, against, f"{middle} {unit}{spread}", more)


def tell(what: str, against: str, ratio: str, more: str) -> None:
    """Add a row to the page in words."""
    told = {"what": what, "against": against, "ratio": ratio, "more": more}
    if ROWS in os.environ:
        with Path(os.environ[ROWS]).open("a") as file:
            file.write(json.dumps(told) + "\n")


def _number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def peak_mib() -> float:
    """Peak memory of this process; `resource.getrusage` counts what its parent took when it started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
