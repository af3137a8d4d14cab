"""What benchmarks share: ways that take turns, and the rows that they tell the page."""

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROWS = "TWINSET_BENCH_ROWS"  # environment variable: the file that rows are added to; absent: they are only printed
OURS = "twinset"


def compare(
    what: str,
    ours: Callable[[], Any],
    others: Mapping[str, Callable[[], Any]],
    rounds: int = 3,
    clock: Callable[[], float] = time.process_time,
    more: Callable[[float], str] = lambda seconds: "",
    warm: bool = True,
) -> dict[str, Any]:
    """Measure how many times as long other ways take, and tell a row for each; returns what each way returned last.

    All take turns, so that other work on the machine slows all alike. CPU time of this process holds on a busy machine;
    the wall's counts where others do the work.

    Args:
        more: what else a row says, from the least seconds of ours.
        warm: the first round does not count: libraries load parts of themselves at first use.
    """
    ways = {OURS: ours, **others}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    results = {}
    for _ in range(rounds + warm):
        for name, way in ways.items():
            began = clock()
            results[name] = way()
            seconds[name].append(clock() - began)
    counted = {name: measured[warm:] for name, measured in seconds.items()}
    for name in others:
        ratios = [slow / fast for slow, fast in zip(counted[name], counted[OURS], strict=True)]
        row(what, name, ratios, more(min(counted[OURS])))
    return results


def row(what: str, against: str, ratios: Sequence[float], more: str = "", unit: str = "×") -> None:
    """Print a row, and add it to the page where `page` runs this benchmark. ratios: of each round."""
    middle = _number(statistics.median(ratios))
    spread = f" ({_number(min(ratios))}–{_number(max(ratios))})" if len(ratios) > 1 else ""
    print(f"{what} | {against} | {middle} {unit}{spread} | {more}", flush=True)
    tell(what, against, f"{middle} {unit}{spread}", more)


def tell(what: str, against: str, ratio: str, more: str) -> None:
    """Add a row to the page in words."""
    cells = {"what": what, "against": against, "ratio": ratio, "more": more}
    if ROWS in os.environ:
        with Path(os.environ[ROWS]).open("a") as file:
            file.write(json.dumps(cells) + "\n")


def _number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
