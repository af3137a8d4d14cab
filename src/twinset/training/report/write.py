"""Writes what a finished run says of itself: ``data.json``, the model card ``README.md``, and ``report.html``."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from twinset.cards.rendering import render
from twinset.evaluation.report.distributions import Panel
from twinset.shards.storage.whole_file import write_text
from twinset.training.runs.settings import RunSettings

#: Of a row of the history, what is not a curve.
NO_CURVES = frozenset({"step", "epoch", "left_out", "validation", "chance"})


class Curves(contextlib.AbstractContextManager["Curves"]):
    """Writes ``OUT/tensorboard``. What a killed run logged after its last checkpoint is hidden by the resumed one.

    Args:
        first: steps taken before.
    """

    def __init__(self, out: Path, first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder = out / "tensorboard"
        self._writer = SummaryWriter(str(self._folder), purge_step=first + 1)

    def __exit__(self, *_: object) -> None:
        with self._explained():
            self._writer.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row of the history."""
        with self._explained():
            for name, value in scalars(row).items():
                self._writer.add_scalar(name, value, row["step"])

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # raised by TensorBoard's own thread, which does not name its file
            note = f"{self._folder}: free some room and run the same command again, which resumes"
            if note not in getattr(error, "__notes__", ()):  # closing raises the same one again
                error.add_note(note)
            raise


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The curves that a row has a point of: ``training/NAME`` and ``validation/NAME``."""
    found = {f"training/{name}": float(value) for name, value in row.items() if name not in NO_CURVES}
    return found | {f"validation/{name}": float(value) for name, value in row.get("validation", {}).items()}


TEMPLATES = Path(__file__).parent / "templates"
MOST_LEFT_OUT = 20  # examples on page and card; the history has all
MOST_POINTS = 400  # of a curve; more are averaged
AXIS = "optimiser step"
#: Curves of a panel, by its title.
TRAINING: Mapping[str, Sequence[str]] = {
    "loss": ("loss", "objective", "match", "contrast", "regulariser"),
    "training: percent": ("image_accuracy", "text_accuracy", "match_accuracy", "accuracy"),
    "active fraction: percent": ("active_fraction", "active_v1", "active_v2"),
    "learning rate": ("lr",),
    "logit scale": ("logit_scale",),
    "norm of the gradient": ("gradient_norm",),
}
VALIDATION: Mapping[str, Sequence[str]] = {
    "validation: percent": ("accuracy", "text", "image", "group", "recall@1", "recall@5", "recall@10"),
    "validation: loss": ("loss",),
}


@dataclass(frozen=True, slots=True)
class About:
    """Words about a kind of run.

    what: a sentence without its full stop. model: how ``--model`` names the best weights, OUT being the folder.
    best_by: figure of the validation that they are chosen by. figures: what the figures are. recipe: whose settings the
    defaults are; published: these settings.
    """

    what: str
    model: str
    best_by: str
    figures: str
    recipe: str
    published: Mapping[str, Any]


def write_report(
    out: Path,
    settings: RunSettings,
    data: Mapping[str, Any],
    result: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    about: About,
    pictures: bool = True,
) -> None:
    """Write the card, ``data.json`` and, with its plots, the page of a run; the same bytes for the same run.

    Args:
        data: every dataset and shard (`training.clip.data.RunData.facts`).
        result: what `training.clip.train` writes as ``result.json``.
        rows: of the history.
        pictures: whether the page is written too.
    """
    values = {
        "final": rows[-1] if rows else {},
        "validations": [{"step": row["step"], **row["validation"]} for row in rows if "validation" in row],
        "left_out": sorted({(where, reason) for row in rows for where, reason in row.get("left_out", [])}),  # each once
    }
    shown = panels(rows) if pictures else None
    write_pages(out, settings, data, result, about, shown, "model_card.md.j2", "training.html.j2", values)


def write_pages(
    out: Path,
    settings: BaseModel,
    data: Mapping[str, Any],
    result: Mapping[str, Any],
    about: About,
    shown: Sequence[Panel] | None,
    card: str,
    page: str,
    values: Mapping[str, Any],
) -> None:
    """Write the card, ``data.json`` and the page of whatever was trained.

    Args:
        data, result, about: as `write_report`; of a result ``sha256``, ``identity`` and ``runtime`` are needed.
        shown: plots of the page; None without a page.
        card, page: names of templates. values: what these need besides.
    """
    values = {
        "settings": settings.model_dump(mode="json"),
        "about": about,
        "datasets": [{"use": use, **one, "tars": len(one.get("shards", []))} for use in data for one in data[use]],
        "result": result,
        "most_left_out": MOST_LEFT_OUT,
        "run_name": out.name,
        **values,
    }
    said = {"weights": result["sha256"], "identity": result["identity"], **data}
    write_text(out / "data.json", json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    write_text(out / "README.md", render(card, TEMPLATES, **values))
    if shown is not None:
        from twinset.evaluation.report.distributions import plot

        curves = plot(shown) if shown else None  # none without a step
        write_text(out / "report.html", render(page, TEMPLATES, curves=curves, **values))


def panels(rows: Sequence[Mapping[str, Any]]) -> list[Panel]:
    """Panels of training and validation; those without a curve are left out."""
    trained = _panels("training", TRAINING, rows)
    return trained + _panels("validation", VALIDATION, [row for row in rows if "validation" in row])


def _panels(kind: str, titles: Mapping[str, Sequence[str]], rows: Sequence[Mapping[str, Any]]) -> list[Panel]:
    points = [scalars(row) for row in rows]
    steps = binned(row["step"] for row in rows)
    found = []
    for title, names in titles.items():
        there = [name for name in names if points and all(f"{kind}/{name}" in one for one in points)]
        lines = {name: binned(one[f"{kind}/{name}"] for one in points) for name in there}
        if lines:
            found.append(Panel(title, AXIS, steps, lines))
    return found


def binned(values: Iterable[float]) -> NDArray[np.float64]:
    """Values (n,), or the means of at most `MOST_POINTS` runs of them, of nearly equal length."""
    held = np.fromiter(values, np.float64)
    if len(held) <= MOST_POINTS:
        return held
    return np.array([part.mean() for part in np.array_split(held, MOST_POINTS)])
