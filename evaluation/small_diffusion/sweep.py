"""Sweep prompt-to-prompt's two shares of steps on the small model: ``python -m evaluation.small_diffusion.sweep``.

For every pair of ``cross_replace_steps`` and ``self_replace_steps``: how many edits succeed, and how much of the rest
changes against plain re-generation, which is the pair 0, 0. It ends with the pair to choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from evaluation.small_diffusion.edit_report import Summary, edit_options, ways
from evaluation.small_diffusion.edits import draw_edits, make, outcome
from evaluation.small_diffusion.report import write
from generators.edited_pairs.vocabulary import KINDS
from generators.prompt_to_prompt.models import load_model

TOLERATED = 0.05  # of plain's success

#: (cross_replace_steps, self_replace_steps) -> kind of edit -> what came of it.
Grid = Mapping[tuple[float, float], Mapping[str, Summary]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, judge, print and write ``sweep.json`` and ``sweep.png``."""
    parser = edit_options(__doc__, out="sweep", edits=24)
    parser.add_argument("--cross", type=float, nargs="+", default=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    parser.add_argument("--self", type=float, nargs="+", default=(0.0, 0.2, 0.4, 0.6, 0.8), dest="own")
    parser.add_argument("--blend", action="store_true", help="with local blend, where an edit has a region")
    given = parser.parse_args(arguments)
    pipeline = load_model(str(given.model), given.device, torch.float32)
    edits = {kind: draw_edits(kind, given.edits, given.seed) for kind in KINDS}
    grid: dict[tuple[float, float], dict[str, Summary]] = {}
    for cell in sorted({(0.0, 0.0), *((cross, own) for cross in given.cross for own in given.own)}):
        how = ways(*cell)["with local blend" if given.blend and cell != (0.0, 0.0) else "prompt-to-prompt"]
        grid[cell] = {}
        for kind, drawn in edits.items():
            pairs = make(pipeline, drawn, how, steps=given.steps, guidance=given.guidance, batch=given.batch)
            grid[cell][kind] = Summary.of([outcome(*both) for both in zip(drawn, pairs, strict=True)])
        ratios = change_ratios(grid, cell)
        said = (f"{kind} {one.second.value:.0%} changes {ratios[kind]:.2f}" for kind, one in grid[cell].items())
        print(f"cross {cell[0]:.1f} self {cell[1]:.1f}: " + ", ".join(said), flush=True)
    best = choose(grid)
    print(f"chosen: cross_replace_steps {best[0]}, self_replace_steps {best[1]}")
    cells = [
        {"cross_replace_steps": cell[0], "self_replace_steps": cell[1]}
        | {kind: summary.as_json() for kind, summary in found.items()}
        for cell, found in grid.items()
    ]
    _plot(grid, best, write(given, "sweep", {"chosen": best, "cells": cells}))


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


def _plot(grid: Grid, chosen: tuple[float, float], path: Path) -> None:
    """Success and change of each kind as heat maps, the chosen cell framed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    across, down = (sorted({cell[axis] for cell in grid}) for axis in (0, 1))
    figure = Figure(figsize=(10, 3.2 * len(KINDS)), layout="constrained")
    for (left, right), kind in zip(figure.subplots(len(KINDS), 2), KINDS, strict=True):
        success = {cell: found[kind].second.value for cell, found in grid.items()}
        change = {cell: change_ratios(grid, cell)[kind] for cell in grid}
        for axes, values, title, form in (
            (left, success, f"{kind}: second picture right", ".0%"),
            (right, change, f"{kind}: change elsewhere, share of plain's", ".2f"),
        ):
            table = [[values.get((x, y), math.nan) for x in across] for y in down]
            axes.imshow(table, cmap="Greens", vmin=0, vmax=1, aspect="auto")
            axes.set(title=title, xlabel="cross_replace_steps", ylabel="self_replace_steps")
            axes.set_xticks(range(len(across)), across)
            axes.set_yticks(range(len(down)), down)
            for (x, y), value in values.items():
                colour = "white" if value > 0.55 else "black"
                axes.text(across.index(x), down.index(y), format(value, form), ha="center", va="center", color=colour)
            corner = across.index(chosen[0]) - 0.5, down.index(chosen[1]) - 0.5
            axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="firebrick", linewidth=2))
    figure.savefig(path)


if __name__ == "__main__":
    main()
