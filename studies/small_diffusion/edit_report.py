"""Judge prompt-to-prompt on the small model: ``python -m studies.small_diffusion.edit_report``.

Each edit is made by plain re-generation (both captions from one noise, nothing replaced), by prompt-to-prompt, and by
prompt-to-prompt with local blend where the edit has a region; the judge is the small world's checker. With several
values of ``--cross`` or ``--self``, every pair of them is tried and plotted, and one is chosen.
"""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from studies.small_diffusion.edits import How, Outcome, WorldEdit, draw_edits, make, outcome
from studies.small_diffusion.report import SHIPPED, Cell, Share, options, write
from twinset.generators.edited_pairs.vocabulary import KINDS
from twinset.generators.prompt_to_prompt.alignment import Edit
from twinset.generators.prompt_to_prompt.pipeline import load_model

ON_SHEET = 16  # edits a kind
TOLERATED = 0.05  # of plain's success
BLENDED = "with local blend"


class Summary(NamedTuple):
    """What came of many edits: shares of the answers of `Outcome`, and the mean change of the rest (grey levels).

    Edits that left nothing to compare, because no object was found, are not in the mean.
    """

    second: Share
    edited: Share
    change: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Self:
        """Of at least one."""
        changes = [one.change for one in outcomes if not math.isnan(one.change)]
        return cls(
            Share.count(one.second for one in outcomes),
            Share.count(one.edited for one in outcomes),
            float(np.mean(changes)) if changes else math.nan,
        )


Steps = tuple[float, float]  # cross_replace_steps, self_replace_steps
PLAIN: Steps = (0.0, 0.0)  # nothing is replaced

#: By steps and kind of edit; with local blend where the kind has a region.
Grid = Mapping[Steps, Mapping[str, Summary]]


def ways(steps: Steps) -> dict[str, How]:
    """How an edit is made with these steps, by the name of the way."""
    if steps == PLAIN:
        return {"plain": lambda edit: Edit.plain(edit.captions)}
    return {
        "prompt-to-prompt": lambda edit: Edit(edit.captions, *steps),
        BLENDED: lambda edit: Edit(edit.captions, *steps, blend=edit.region),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, judge, print and write ``edits.json`` and ``edits.png``; of several steps also ``sweep.png``."""
    parser = options(__doc__, out="edits", batch=25)
    parser.add_argument("--edits", type=int, default=200, help="of each kind")
    parser.add_argument("--cross", type=float, nargs="+", default=[SHIPPED.cross_replace_steps])
    parser.add_argument("--self", type=float, nargs="+", default=[SHIPPED.self_replace_steps], dest="own")
    given = parser.parse_args(arguments)
    pipeline = load_model(str(given.model), given.device, torch.float32)
    began = time.monotonic()
    rows: list[dict[str, object]] = []
    grid: defaultdict[Steps, dict[str, Summary]] = defaultdict(dict)
    cells: list[Cell] = []
    for kind in KINDS:
        edits = draw_edits(kind, given.edits, given.seed)
        pairs: dict[str, NDArray[np.uint8]] = {}  # of the first steps
        for steps in dict.fromkeys([PLAIN, *product(given.cross, given.own)]):
            for way, how in ways(steps).items():
                if way == BLENDED and not any(edit.region for edit in edits):
                    continue
                made = make(pipeline, edits, how, steps=given.steps, guidance=given.guidance, batch=given.batch)
                pairs.setdefault(way, made)
                grid[steps][kind] = found = Summary.of([outcome(*both) for both in zip(edits, made, strict=True)])
                named = {"kind": kind, "way": way, "cross_replace_steps": steps[0], "self_replace_steps": steps[1]}
                change = None if math.isnan(found.change) else round(found.change, 3)
                rows.append({**named, **found._asdict(), "change": change})
                print(f"{kind:9} {way:16} {steps[0]:.1f} {steps[1]:.1f} second right {found.second}", end="   ")
                print(f"changed word {found.edited}   change elsewhere {found.change:.2f} grey levels", flush=True)
        cells += [_cell(edit, {way: made[n] for way, made in pairs.items()}) for n, edit in enumerate(edits[:ON_SHEET])]
    best = choose(grid)
    print(f"{len(KINDS)} x {given.edits} edits in {time.monotonic() - began:.0f} s")
    write(given, "edits", {"rows": rows, "chosen": best}, cells, columns=4)
    if len(grid) > 2:
        print(f"chosen: cross_replace_steps {best[0]}, self_replace_steps {best[1]}")
        _plot(grid, best, given.out / "sweep.png")


def change_ratios(grid: Grid, steps: Steps) -> dict[str, float]:
    """By kind: what changes where nothing should, as a share of plain's; not a number where plain changed nothing."""
    plain = grid[PLAIN]
    return {
        kind: summary.change / plain[kind].change if plain[kind].change > 0 else math.nan
        for kind, summary in grid[steps].items()
    }


def choose(grid: Grid) -> Steps:
    """Of the steps that in no kind succeed less than plain by more than 5 points, those whose worst kind keeps most.

    Plain is among them, so that there always are some. Where nothing could be compared, nothing counts as kept.
    """
    least = {kind: plain.second.value - TOLERATED for kind, plain in grid[PLAIN].items()}
    fit = [steps for steps, of in grid.items() if all(one.second.value >= least[kind] for kind, one in of.items())]

    def worst(steps: Steps) -> float:
        return max(1.0 if math.isnan(ratio) else ratio for ratio in change_ratios(grid, steps).values())

    return min(fit, key=worst)


def _cell(edit: WorldEdit, pairs: Mapping[str, NDArray[np.uint8]]) -> Cell:
    """The first picture, then the second as each way has it."""
    shown = [pairs["plain"][0], *(pair[1] for pair in pairs.values())]
    shown += [np.full_like(shown[0], 255)] * (4 - len(shown))
    right = {way: outcome(edit, pair).second for way, pair in pairs.items()}
    remark = ", ".join(f"{way} {'right' if is_right else 'wrong'}" for way, is_right in right.items())
    return Cell(shown, " / ".join(edit.captions), remark, not all(right.values()))


def _plot(grid: Grid, chosen: Steps, path: Path) -> None:
    """Success and change of each kind as heat maps, the chosen steps framed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    across, down = (sorted({steps[axis] for steps in grid}) for axis in (0, 1))
    figure = Figure(figsize=(10, 3.2 * len(KINDS)), layout="constrained")
    for row, kind in zip(figure.subplots(len(KINDS), 2), KINDS, strict=True):
        success = {steps: found[kind].second.value for steps, found in grid.items()}
        change = {steps: change_ratios(grid, steps)[kind] for steps in grid}
        for axes, values, title, form in (
            (row[0], success, f"{kind}: second picture right", ".0%"),
            (row[1], change, f"{kind}: change elsewhere, share of plain's", ".2f"),
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
