"""The curves of a run as panels for plotting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.report.distributions import Panel
from twinset.training.report.curves import scalars

MOST_POINTS = 400  # of a curve; more are averaged
AXIS = "optimiser step"
#: Curves of a panel, by its title.
TRAINING: Mapping[str, Sequence[str]] = {
    "loss": ("loss", "objective", "regulariser"),
    "accuracy in training (share)": ("image_accuracy", "text_accuracy", "match_accuracy", "accuracy"),
    "active fraction": ("active_fraction",),
    "learning rate": ("lr",),
    "logit scale": ("logit_scale",),
    "norm of the gradient": ("gradient_norm",),
}
VALIDATION: Mapping[str, Sequence[str]] = {
    "validation: percent": ("accuracy", "text", "image", "group", "recall@1", "recall@5", "recall@10"),
    "validation: loss": ("loss",),
}


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
