"""What stages will cost and what they cost, for people."""

import os
from collections.abc import Mapping
from typing import Any

from twinset.cli.tables import print_columns
from twinset.cli.terminal import say

HEADER = ("stage", "candidates", "shards", "samples", "written", "core or GPU time", "language models", "from")
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def print_estimates(stages: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what `twinset.plan` estimates: a line a stage, and the sums of those that are known."""
    known = [row["estimate"] for row in stages.values() if row["estimate"] is not None]
    if not known:
        say(
            "What it takes is not known: nothing was built to measure it by. Build a few samples and name their folder "
            "with --like"
        )
        return
    unknown = ("unknown", "", "", "", "", "", "")
    print_columns(
        HEADER,
        [(name, *(_cells(row["estimate"]) if row["estimate"] else unknown)) for name, row in stages.items()],
    )
    sums = {gpu: sum(one["seconds"] for one in known if one["gpu"] is gpu) for gpu in (False, True)}
    cores, without = os.cpu_count() or 1, len(stages) - len(known)
    said = [f"{_size(sum(one['bytes'] for one in known))} written", f"{_time(sums[False])} of cores"]
    said[1] += f" ({_time(sums[False] / cores)} on {cores})" if cores > 1 else ""
    said += [f"{_time(sums[True])} of GPUs"] if sums[True] else []
    said += [f"cost {sum(costs):,.2f}"] if (costs := [one["cost"] for one in known if one["cost"] is not None]) else []
    say("Together:", ", ".join(said) + (f"; {without} unknown" if without else ""))


def _cells(cost: Mapping[str, Any]) -> tuple[str, ...]:
    tokens = f"{cost['prompt_tokens']:,} + {cost['completion_tokens']:,} tokens"
    priced = "" if cost["cost"] is None else f", cost {cost['cost']:,.2f}"
    return (
        *(f"{cost[what]:,}" for what in ("candidates", "shards", "samples")),
        _size(cost["bytes"]),
        _time(cost["seconds"]) + (" of a GPU" if cost["gpu"] else ""),
        f"{cost['answers']:,} requests, {tokens}{priced}" if cost["answers"] else "",
        cost.get("from", ""),
    )


def _size(count: float) -> str:
    return next((f"{count / unit:,.3g} {name}" for unit, name in UNITS if count >= unit), f"{count:,.0f} bytes")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
