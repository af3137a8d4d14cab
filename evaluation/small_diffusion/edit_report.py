"""Judges prompt-to-prompt on the small model: ``python -m evaluation.small_diffusion.edit_report``.

Each edit is made by plain re-generation (both captions from one noise, nothing replaced), by prompt-to-prompt, and by
prompt-to-prompt with local blend where the edit has a region; the judge is `evaluation.small_diffusion.checker`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.small_diffusion.edits import Outcome, WorldEdit, draw_edits, make, outcome
from evaluation.small_diffusion.measure import SHIPPED, quiet
from evaluation.small_diffusion.picture_sheet import Cell, picture_sheet
from evaluation.small_diffusion.shares import Share
from generators.edited_pairs.vocabulary import KINDS
from generators.prompt_to_prompt.edits import Edit
from generators.prompt_to_prompt.models import load_model
from manifests.locations import small_model_folder

BATCH = 25
ON_SHEET = 16  # edits a kind


@dataclass(frozen=True, slots=True)
class Summary:
    """Of many edits: shares of ``Outcome``'s answers, and the mean change of what should stay, in grey levels.

    unseen: edits that left nothing to compare, because no object was found; they are not in the mean.
    """

    first: Share
    second: Share
    edited: Share
    change: float
    unseen: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Summary:
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


def ways(cross: float, self_attention: float) -> dict[str, Callable[[WorldEdit], Edit]]:
    """The ways that an edit is made, by name."""

    def replacing(edit: WorldEdit, blend: bool) -> Edit:
        return Edit(edit.captions, cross, self_attention, blend=edit.region if blend else None)

    return {
        "plain": lambda edit: Edit.plain(edit.captions),
        "prompt-to-prompt": lambda edit: replacing(edit, False),
        "with local blend": lambda edit: replacing(edit, True),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, judge, print and write ``edits.json`` and ``edits.png``."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, edits=200)
    parser.add_argument("--cross-replace-steps", type=float, default=SHIPPED.cross_replace_steps)
    parser.add_argument("--self-replace-steps", type=float, default=SHIPPED.self_replace_steps)
    parser.add_argument("--out", type=Path, default=Path("edits"), help="folder for the report and the pictures")
    asked = parser.parse_args(arguments)

    quiet()
    pipeline = load_model(str(asked.model), asked.device, torch.float32)
    began = time.monotonic()
    report: dict[str, dict[str, object]] = {}
    cells: list[Cell] = []
    for kind in KINDS:
        edits = draw_edits(kind, asked.edits, asked.seed)
        pairs: dict[str, NDArray[np.uint8]] = {}
        for way, how in ways(asked.cross_replace_steps, asked.self_replace_steps).items():
            if way == "with local blend" and not any(edit.region for edit in edits):
                continue
            pairs[way] = make(pipeline, edits, how, steps=asked.steps, guidance=asked.guidance, batch=asked.batch)
            summary = Summary.of([outcome(*both) for both in zip(edits, pairs[way], strict=True)])
            report.setdefault(kind, {})[way] = summary.as_json()
            print(f"{kind:10} {way:17} second right {summary.second}   changed word {summary.edited}")
            print(f"{'':28} first right  {summary.first}   change elsewhere {summary.change:.2f} grey levels")
        cells += _cells(edits, pairs)
    print(f"{len(KINDS)} x {asked.edits} edits in {time.monotonic() - began:.0f} s")

    asked.out.mkdir(parents=True, exist_ok=True)
    names = ("edits", "steps", "guidance", "seed", "batch", "device", "cross_replace_steps", "self_replace_steps")
    written = {"settings": {name: getattr(asked, name) for name in names}, "kinds": report}
    (asked.out / "edits.json").write_text(json.dumps(written, indent=2) + "\n")
    (asked.out / "edits.png").write_bytes(picture_sheet(cells, columns=4))


def add_arguments(parser: argparse.ArgumentParser, edits: int) -> None:
    """What this report and the sweep are asked alike."""
    parser.add_argument("--model", type=Path, default=small_model_folder(), help="folder in diffusers' layout")
    parser.add_argument("--edits", type=int, default=edits, help="of each kind")
    parser.add_argument("--steps", type=int, default=SHIPPED.steps)
    parser.add_argument("--guidance", type=float, default=SHIPPED.guidance)
    parser.add_argument("--seed", type=int, default=0, help="of captions and noise")
    parser.add_argument("--batch", type=int, default=BATCH, help="pairs drawn at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def _cells(edits: Sequence[WorldEdit], pairs: dict[str, NDArray[np.uint8]]) -> list[Cell]:
    """The first edits of a kind: the first picture, then the second as each way has it."""
    cells = []
    for number, edit in enumerate(edits[:ON_SHEET]):
        shown = [pairs["plain"][number, 0], *(made[number, 1] for made in pairs.values())]
        shown += [np.full_like(shown[0], 255)] * (4 - len(shown))
        right = {way: outcome(edit, made[number]).second for way, made in pairs.items()}
        remark = ", ".join(f"{way} {'right' if is_right else 'wrong'}" for way, is_right in right.items())
        cells.append(Cell(shown, " / ".join(edit.captions), remark, not all(right.values())))
    return cells


if __name__ == "__main__":
    main()
