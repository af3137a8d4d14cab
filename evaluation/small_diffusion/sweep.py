"""Sweeps prompt-to-prompt's two shares of steps on the small model: ``python -m evaluation.small_diffusion.sweep``.

For every pair of ``cross_replace_steps`` and ``self_replace_steps``: how many edits succeed, and how much of the rest
changes against plain re-generation, which is the pair 0, 0. It ends with the pair to choose.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from evaluation.small_diffusion.edit_report import Summary, add_arguments, ways
from evaluation.small_diffusion.edits import draw_edits, make, outcome
from evaluation.small_diffusion.heat_maps import HeatMap, heat_maps
from evaluation.small_diffusion.measure import quiet
from generators.edited_pairs.vocabulary import KINDS
from generators.prompt_to_prompt.models import load_model

CROSS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SELF = (0.0, 0.2, 0.4, 0.6, 0.8)
EDITS = 24
TOLERATED = 0.05  # of plain's success

#: (cross_replace_steps, self_replace_steps) -> kind of edit -> what came of it.
Grid = Mapping[tuple[float, float], Mapping[str, Summary]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, judge, print and write ``sweep.json`` and ``sweep.png``."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, edits=EDITS)
    parser.add_argument("--cross", type=float, nargs="+", default=CROSS, help="values of cross_replace_steps")
    parser.add_argument("--self", type=float, nargs="+", default=SELF, dest="self_", help="of self_replace_steps")
    parser.add_argument("--blend", action="store_true", help="with local blend, where an edit has a region")
    parser.add_argument("--out", type=Path, default=Path("sweep"), help="folder for the report and the plot")
    asked = parser.parse_args(arguments)

    quiet()
    pipeline = load_model(str(asked.model), asked.device, torch.float32)
    edits = {kind: draw_edits(kind, asked.edits, asked.seed) for kind in KINDS}
    grid: dict[tuple[float, float], dict[str, Summary]] = {}
    for cell in sorted({(0.0, 0.0), *((cross, own) for cross in asked.cross for own in asked.self_)}):
        how = ways(*cell)["with local blend" if asked.blend and cell != (0.0, 0.0) else "prompt-to-prompt"]
        grid[cell] = {}
        for kind, drawn in edits.items():
            pairs = make(pipeline, drawn, how, steps=asked.steps, guidance=asked.guidance, batch=asked.batch)
            grid[cell][kind] = Summary.of([outcome(*both) for both in zip(drawn, pairs, strict=True)])
        ratios = change_ratios(grid, cell)
        said = (f"{kind} {one.second.value:.0%} changes {ratios[kind]:.2f}" for kind, one in grid[cell].items())
        print(f"cross {cell[0]:.1f} self {cell[1]:.1f}: " + ", ".join(said), flush=True)

    best = choose(grid)
    print(f"chosen: cross_replace_steps {best[0]}, self_replace_steps {best[1]}")
    asked.out.mkdir(parents=True, exist_ok=True)
    cells = [
        {"cross_replace_steps": cell[0], "self_replace_steps": cell[1]}
        | {kind: summary.as_json() for kind, summary in summaries.items()}
        for cell, summaries in grid.items()
    ]
    names = ("edits", "steps", "guidance", "seed", "batch", "device", "blend")
    report = {"settings": {name: getattr(asked, name) for name in names}, "chosen": best, "cells": cells}
    (asked.out / "sweep.json").write_text(json.dumps(report, indent=2) + "\n")
    (asked.out / "sweep.png").write_bytes(_plot(grid, best))


def change_ratios(grid: Grid, cell: tuple[float, float]) -> dict[str, float]:
    """By kind: what changes where nothing should, as a share of plain's; not a number where plain changed nothing."""
    plain = grid[0.0, 0.0]
    return {
        kind: summary.change / plain[kind].change if plain[kind].change > 0 else math.nan
        for kind, summary in grid[cell].items()
    }


def choose(grid: Grid) -> tuple[float, float]:
    """Of the cells that in no kind succeed less than plain by more than 5 points, the one whose worst kind keeps most.

    Plain is one of them, so that there always is one. Where nothing could be compared, nothing counts as kept.
    """
    plain = grid[0.0, 0.0]
    fit = [
        cell
        for cell, summaries in grid.items()
        if all(one.second.value >= plain[kind].second.value - TOLERATED for kind, one in summaries.items())
    ]

    def worst(cell: tuple[float, float]) -> float:
        return max(1.0 if math.isnan(ratio) else ratio for ratio in change_ratios(grid, cell).values())

    return min(fit, key=worst)


def _plot(grid: Grid, chosen: tuple[float, float]) -> bytes:
    """Success and change of each kind."""
    rows = []
    for kind in KINDS:
        success = {cell: summaries[kind].second.value for cell, summaries in grid.items()}
        change = {cell: change_ratios(grid, cell)[kind] for cell in grid}
        rows.append(
            [
                HeatMap(f"{kind}: second picture right", success, 1.0, ".0%"),
                HeatMap(f"{kind}: change elsewhere, share of plain's", change, 1.0, ".2f"),
            ]
        )
    return heat_maps(rows, "cross_replace_steps", "self_replace_steps", chosen)


if __name__ == "__main__":
    main()
