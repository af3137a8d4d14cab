"""Judge prompt-to-prompt on the small model: ``python -m evaluation.small_diffusion.edit_report``.

Each edit is made by plain re-generation (both captions from one noise, nothing replaced), by prompt-to-prompt, and by
prompt-to-prompt with local blend where the edit has a region; the judge is `evaluation.small_diffusion.checker`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.small_diffusion.edits import How, Outcome, WorldEdit, draw_edits, make, outcome
from evaluation.small_diffusion.report import SHIPPED, Cell, options, picture_sheet, write
from evaluation.small_diffusion.shares import Share
from generators.edited_pairs.vocabulary import KINDS
from generators.prompt_to_prompt.edits import Edit
from generators.prompt_to_prompt.models import load_model

ON_SHEET = 16  # edits a kind


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of many edits: shares of the answers of `Outcome`, and the mean change of the rest (grey levels).

    unseen: edits that left nothing to compare, because no object was found; they are not in the mean.
    """

    first: Share
    second: Share
    edited: Share
    change: float
    unseen: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Self:
        """Of at least one."""
        changes = [one.change for one in outcomes if not math.isnan(one.change)]
        return cls(
            Share.count(one.first for one in outcomes),
            Share.count(one.second for one in outcomes),
            Share.count(one.edited for one in outcomes),
            float(np.mean(changes)) if changes else math.nan,
            len(outcomes) - len(changes),
        )

    def as_json(self) -> dict[str, object]:
        """Numbers as reports keep them."""
        shares = {name: getattr(self, name).as_json() for name in ("first", "second", "edited")}
        return {**shares, "change": None if math.isnan(self.change) else round(self.change, 3), "unseen": self.unseen}


def ways(cross: float, self_attention: float) -> dict[str, How]:
    """The ways that an edit is made, by name."""
    return {
        "plain": lambda edit: Edit.plain(edit.captions),
        "prompt-to-prompt": lambda edit: Edit(edit.captions, cross, self_attention),
        "with local blend": lambda edit: Edit(edit.captions, cross, self_attention, blend=edit.region),
    }


def edit_options(description: str | None, out: str, edits: int) -> argparse.ArgumentParser:
    """The options of this report and the sweep."""
    parser = options(description, out, batch=25)
    parser.add_argument("--edits", type=int, default=edits, help="of each kind")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, judge, print and write ``edits.json`` and ``edits.png``."""
    parser = edit_options(__doc__, out="edits", edits=200)
    parser.add_argument("--cross-replace-steps", type=float, default=SHIPPED.cross_replace_steps)
    parser.add_argument("--self-replace-steps", type=float, default=SHIPPED.self_replace_steps)
    given = parser.parse_args(arguments)
    pipeline = load_model(str(given.model), given.device, torch.float32)
    began = time.monotonic()
    report: dict[str, dict[str, object]] = {}
    cells: list[Cell] = []
    for kind in KINDS:
        edits = draw_edits(kind, given.edits, given.seed)
        pairs: dict[str, NDArray[np.uint8]] = {}
        for way, how in ways(given.cross_replace_steps, given.self_replace_steps).items():
            if way == "with local blend" and not any(edit.region for edit in edits):
                continue
            pairs[way] = make(pipeline, edits, how, steps=given.steps, guidance=given.guidance, batch=given.batch)
            summary = Summary.of([outcome(*both) for both in zip(edits, pairs[way], strict=True)])
            report.setdefault(kind, {})[way] = summary.as_json()
            print(f"{kind:10} {way:17} second right {summary.second}   changed word {summary.edited}")
            print(f"{'':28} first right  {summary.first}   change elsewhere {summary.change:.2f} grey levels")
        cells += [_cell(edit, {way: made[n] for way, made in pairs.items()}) for n, edit in enumerate(edits[:ON_SHEET])]
    print(f"{len(KINDS)} x {given.edits} edits in {time.monotonic() - began:.0f} s")
    picture_sheet(cells, columns=4).save(write(given, "edits", {"kinds": report}), optimize=True)


def _cell(edit: WorldEdit, pairs: dict[str, NDArray[np.uint8]]) -> Cell:
    """The first picture, then the second as each way has it."""
    shown = [pairs["plain"][0], *(pair[1] for pair in pairs.values())]
    shown += [np.full_like(shown[0], 255)] * (4 - len(shown))
    right = {way: outcome(edit, pair).second for way, pair in pairs.items()}
    remark = ", ".join(f"{way} {'right' if is_right else 'wrong'}" for way, is_right in right.items())
    return Cell(shown, " / ".join(edit.captions), remark, not all(right.values()))


if __name__ == "__main__":
    main()
