"""What a run says of itself: ``data.json``, the model card ``README.md``, and ``report.html``."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel

from twinset.cards.rendering import render
from twinset.evaluation.report.distributions import Panel
from twinset.shards.storage.whole_file import write_text

TEMPLATES = Path(__file__).parent / "templates"
MOST_POINTS = 400  # of a curve, of which every n-th is drawn
#: Which curves a panel has, by its title.
PANELS = {
    "loss": ("training", ("loss", "objective", "match", "contrast", "regulariser", "text_loss", "image_loss")),
    "accuracy (percent)": ("training", ("image_accuracy", "text_accuracy", "match_accuracy", "accuracy", "chance")),
    "hinges above the margin (percent)": ("training", ("active_v1", "active_v2")),
    "learning rate": ("training", ("lr",)),
    "logit scale": ("training", ("logit_scale",)),
    "norm of the gradient": ("training", ("gradient_norm",)),
    "validation: accuracy (percent)": ("validation", ("accuracy", "chance", "text_detection", "image_detection")),
    "validation: scores (percent)": ("validation", ("text", "image", "group", "recall@1", "recall@5", "recall@10")),
    "validation: loss": ("validation", ("loss",)),
}


def panels(rows: Sequence[Mapping[str, Any]]) -> list[Panel]:
    """Panels of the curves that rows of a history have."""
    history = {"training": rows, "validation": _validations(rows)}
    tables = {kind: pl.DataFrame(held, infer_schema_length=None) for kind, held in history.items()}
    drawn = []
    for title, (kind, names) in PANELS.items():
        if curves := [name for name in names if name in tables[kind].columns]:
            points = tables[kind].select("step", *curves).drop_nulls()
            points = points.gather_every(points.height // MOST_POINTS + 1)
            lines = {name: points[name].to_numpy() for name in curves}
            drawn.append(Panel(title, "optimiser step", points["step"].to_numpy(), lines))
    return drawn


def write_report(
    out: Path,
    settings: BaseModel,
    data: Mapping[str, Any],
    result: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> None:
    """Write the card, ``data.json`` and the page of a run, none of which names a folder of this machine.

    The same run gives the same bytes.

    Args:
        data: every dataset and shard (`training.clip.data.RunData.facts`).
        result: what the run writes as ``result.json``.
        rows: of the history.
        about: words about the run (`training.runs.trainer.Task.about`).
    """
    from twinset.evaluation.report.distributions import plot

    values = {
        "run_name": out.name,
        "about": about,
        "result": result,
        "final": rows[-1] if rows else {},
        "validations": _validations(rows),
        "left_out": sorted({(where, reason) for row in rows for where, reason in row.get("left_out", [])}),  # each once
    }
    datasets = [{"use": use, **facts, "tars": len(facts.get("shards", []))} for use in data for facts in data[use]]
    sources = {"weights": result["sha256"], "identity": result["identity"], **data}
    chosen = settings.model_dump(mode="json")
    named = _without_folders({"settings": chosen, "datasets": datasets, "sources": sources, **values})
    write_text(out / "data.json", json.dumps(named["sources"], indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    write_text(out / "README.md", render("model_card.md.j2", TEMPLATES, **named))
    write_text(out / "report.html", render("training.html.j2", TEMPLATES, curves=plot(panels(rows)), **named))


def _validations(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"step": row["step"], **row["validation"]} for row in rows if "validation" in row]


def _without_folders(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of JSON without the absolute folders in which datasets lie, and what their settings name."""
    text, start = json.dumps(values, ensure_ascii=False), r"(?<![\w/])/(?!/)"  # not within a URL
    named = [values["settings"], [dataset["dataset"] for dataset in values["datasets"]]]
    folders = re.findall(rf"{start}(?:[^:\"]*/)?", json.dumps(named, ensure_ascii=False))
    for folder in sorted({*folders}, key=len, reverse=True):
        text = re.sub(start + re.escape(folder[1:]), "", text)
    without: dict[str, Any] = json.loads(text)
    return without
