"""Writes docs/reference.md, each kind of each door with its settings: ``make reference``."""

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_json

from twinset.contracts.doors import OfKind, Registry, types_in
from twinset.contracts.licences.terms import StatedTerms
from twinset.contracts.recipe.models import Rate, Recipe, Subset
from twinset.contracts.source import FILTERS, SOURCES, Place, Reads
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.metrics.score_kinds import METRICS
from twinset.evaluation.scorers.kinds import MODELS
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS
from twinset.generators.decisions.question import QUESTIONS
from twinset.models.image_engine import IMAGE_ENGINES
from twinset.models.language_models.settings import LANGUAGE_MODELS
from twinset.models.visual_questions.settings import QUESTION_ANSWERERS
from twinset.shards.export.formats import EXPORTERS
from twinset.training.grids.design import settings_class
from twinset.training.losses.names import OBJECTIVES, REGULARISERS
from twinset.training.tasks import TASKS

PAGE = Path(__file__).with_name("reference.md")
WITH_SETTINGS = (SOURCES, FILTERS, IMAGE_ENGINES, LANGUAGE_MODELS, QUESTION_ANSWERERS, CAPTION_SCORERS)
OTHERS = (BENCHMARKS, METRICS, MODELS, QUESTIONS, EXPORTERS, OBJECTIVES, REGULARISERS)
HEAD = """<!-- Written by `make reference` from the code; edit the docstrings instead. -->

# Reference

Of twinset alone: docstrings explain the settings of [twinset-extras](../extras/README.md). What a recipe or a
command chooses by name. A `stage` is the name of another stage of the recipe, or the folder or URL of one that was
built. Paths count from the recipe's folder. Every source also takes `licence`, `credit` and `source_url`, for
records that do not state their own. On the command line `validate_every` is `--validate-every`."""
#: Where a docstring begins to explain settings: at the start of a paragraph, or after a sentence or clause.
BEGINS = re.compile(r"(?:^|(?<=[.;:)]\s))((?:[a-z_][a-z_0-9]*, )*[a-z_][a-z_0-9]*): ")
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
NAMES = {"str": "text", "int": "integer", "float": "number", "bool": "`true` or `false`", "NoneType": "`null`"}


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## Recipe", *(section(one.__name__, one) for one in (Recipe, Subset, Rate)), "## Training"]
    parts += [section(f"twinset train {task}", settings_class(task)) for task in TASKS]
    door: Registry[Any]
    for door in WITH_SETTINGS:
        parts += [f"## {door.what.capitalize()}s", *(section(kind, door.find(kind)) for kind in door.own())]
    for door in OTHERS:
        rows = [(f"`{name}`", summary(door.find(name))) for name in door.own()]
        parts += [f"## {door.what.capitalize()}s", table(("name", "is"), rows)]
    return "\n\n".join(parts) + "\n"


def section(title: str, settings: type[BaseModel]) -> str:
    """What settings are, their table, and the tables of settings within that have no kind."""
    parts = [f"### {title}", summary(settings), settings_table(settings)]
    for name, field in settings.model_fields.items() if settings is not Recipe else ():
        for inner in types_in(field.annotation):
            if "kind" not in getattr(inner, "model_fields", {"kind"}):
                parts += [f"`{name}`: {summary(inner)}", settings_table(inner)]
    return "\n\n".join(parts)


def settings_table(settings: type[BaseModel]) -> str:
    """All settings of a class but its kind, with what the nearest docstring of its bases says of each."""
    said: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        said |= explained(base.__dict__.get("__doc__") or "", settings)
    stated = StatedTerms.model_fields if issubclass(settings, StatedTerms) else {}
    rows = [
        (f"`{name}`", written(field.annotation, field.metadata), default(field), said.get(name, ""))
        for name, field in settings.model_fields.items()
        if name != "kind" and name not in stated
    ]
    return table(("setting", "type", "default", "meaning"), rows) if rows else "No settings."


def default(field: FieldInfo) -> str:
    """A default as a recipe may have it; of one that other settings decide, its meaning says how."""
    plain = not field.is_required() and field.default_factory is None
    return f"`{to_json(field.default).decode()}`" if plain else "required" if field.is_required() else ""


def explained(docstring: str, settings: type[BaseModel]) -> dict[str, str]:
    """What a docstring says of settings, in sentences that begin with ``name:`` or ``a, b:``."""
    found: dict[str, str] = {}
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        line = " ".join(paragraph.split()).replace("``", "`")
        end = len(line)
        for start in reversed([*BEGINS.finditer(line)]):
            if settings.model_fields.keys() >= {*(names := start[1].split(", "))}:
                text, end = line[start.end() : end].strip().rstrip(";."), start.start()
                found |= {} if text.startswith("as `") else dict.fromkeys(names, text)
    return found


def written(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What may be written as a setting, in words."""
    origin, inner, bounds = get_origin(annotation), get_args(annotation), ""
    for mark in metadata:
        if isinstance(mark, Place | Reads) and origin is not tuple:
            return getattr(mark, "what", "stage")
        if isinstance(mark, OfKind):
            return " or ".join((f"{mark.registry.what} by `kind`", *(f"`{kind}`" for kind in mark.own)))
        bounds += "".join(f", {sign} {getattr(mark, name):g}" for name, sign in BOUNDS.items() if hasattr(mark, name))
    if hasattr(annotation, "__metadata__"):
        return written(inner[0], annotation.__metadata__)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(written, inner)))
    if origin is tuple:
        return f"list: {written(inner[0], metadata)}"
    name = "mapping" if inner else "settings" if hasattr(annotation, "model_fields") else annotation.__name__
    return NAMES.get(name, name) + bounds


def summary(part: Any) -> str:
    """The first paragraph of the docstring of a class, or of what an object opens, writes or names."""
    if not isinstance(part, type):
        part = resolve_name(part.place) if hasattr(part, "place") else getattr(part, "open", None) or part.write
    text = inspect.getdoc(getattr(part, "func", part)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def table(head: tuple[str, ...], rows: list[Any]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
