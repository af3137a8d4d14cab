"""What the reports on the small model share: their options, shares of right answers, and sheets of its pictures."""

import argparse
import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.edited_pairs.source import StableDiffusion
from twinset.models.diffusion.models import be_quiet
from twinset_demo.models import SMALL

#: What a recipe that names the small model gets: reports are made with the settings that builds draw with.
SHIPPED = StableDiffusion.model_validate({"kind": "stable-diffusion", "model": "small"})

ENLARGED, GAP, LINE = 2, 14, 14  # factor; pixels
CHARACTER = 5.6  # pixels, on average, in the default font at 11 points
NORMAL_95 = 1.959964  # 97.5 % quantile of the normal distribution


def options(description: str | None, out: str, batch: int) -> argparse.ArgumentParser:
    """A parser with the options of every report; also silences the progress bars and remarks of the libraries.

    Args:
        description: of the command.
        out: name of the report's folder below ``out/``, where no other is asked for.
        batch: pictures or pairs drawn at once, likewise.
    """
    be_quiet()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, default=SMALL.folder, help="folder in diffusers' layout")
    parser.add_argument("--out", type=Path, default=Path("out") / out, help="folder for the report and its picture")
    parser.add_argument("--steps", type=int, default=SHIPPED.steps)
    parser.add_argument("--guidance", type=float, default=SHIPPED.guidance)
    parser.add_argument("--seed", type=int, default=0, help="of captions and noise")
    parser.add_argument("--batch", type=int, default=batch, help="pictures or pairs drawn at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


@dataclass(frozen=True, slots=True)
class Share:
    """right of ``of`` independent trials."""

    right: int
    of: int

    @classmethod
    def count(cls, answers: Iterable[bool]) -> Self:
        """The share of answers that are right."""
        listed = list(answers)
        return cls(sum(listed), len(listed))

    @property
    def value(self) -> float:
        """0..1; not a number without trials."""
        return self.right / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % score interval (Wilson 1927), which stays within 0..1. With p = right / of, n = of, z = NORMAL_95:

        (p + z² / 2n ± z sqrt(p (1 - p) / n + z² / 4n²)) / (1 + z² / n)
        """
        if not self.of:
            return 0.0, 1.0
        z2 = NORMAL_95**2
        centre = (self.right + z2 / 2) / (self.of + z2)
        half = NORMAL_95 / (self.of + z2) * math.sqrt(self.right * (self.of - self.right) / self.of + z2 / 4)
        return max(0.0, centre - half), min(1.0, centre + half)

    def as_json(self) -> dict[str, float | int]:
        """Counts, share and interval, as reports keep them."""
        low, high = (round(end, 4) for end in self.interval)
        share = round(self.value, 4) if self.of else 0.0
        return {"right": self.right, "of": self.of, "share": share, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.value:5.1f} % ({100 * low:.1f}-{100 * high:.1f}) of {self.of}"


@dataclass(frozen=True, slots=True)
class Cell:
    """pictures side by side, all of one size, with a caption and a remark. wrong: the remark is a complaint."""

    pictures: Sequence[Pixels]
    caption: str
    remark: str
    wrong: bool


def write(given: argparse.Namespace, name: str, found: dict[str, Any], cells: Sequence[Cell], columns: int) -> None:
    """Write OUT/NAME.json with the settings and what was found, shares too, and OUT/NAME.png with the cells; say so."""
    settings = {key: value for key, value in vars(given).items() if key not in ("model", "out")}
    given.out.mkdir(parents=True, exist_ok=True)
    report = json.dumps({"settings": settings, **found}, indent=2, default=Share.as_json)
    (given.out / f"{name}.json").write_text(report + "\n")
    _picture_sheet(cells, columns).save(given.out / f"{name}.png", optimize=True)
    print(f"wrote {given.out / name}.json and {given.out / name}.png")


def _picture_sheet(cells: Sequence[Cell], columns: int) -> Image.Image:
    """Cells row by row; pixels are enlarged without smoothing, so that each is seen as it was drawn."""
    strips = [Image.fromarray(np.concatenate(list(cell.pictures), axis=1)) for cell in cells]
    width, height = (side * ENLARGED for side in strips[0].size)
    texts = [[textwrap.wrap(text, int(width / CHARACTER)) for text in (cell.caption, cell.remark)] for cell in cells]
    tall = height + LINE * max(len(caption) + len(remark) for caption, remark in texts) + GAP
    sheet = Image.new("RGB", (GAP + columns * (width + GAP), GAP + -(-len(cells) // columns) * tall), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for number, (cell, strip, (caption, remark)) in enumerate(zip(cells, strips, texts, strict=True)):
        left, top = GAP + number % columns * (width + GAP), GAP + number // columns * tall
        sheet.paste(strip.resize((width, height), Image.Resampling.NEAREST), (left, top))
        for line, text in enumerate(caption + remark):
            colour = "black" if line < len(caption) else "firebrick" if cell.wrong else "grey"
            pen.text((left, top + height + LINE * line), text, colour, font)
    return sheet
