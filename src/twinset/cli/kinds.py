"""``twinset kinds`` and docs/reference.md: what a recipe or a command chooses by name, and the settings of each."""

import inspect
import re
from collections.abc import Iterable, Iterator
from pkgutil import resolve_name
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from twinset.cli.command import answer
from twinset.cli.terminal import print_table, say
from twinset.contracts.errors import WrongUse, suggested

#: Where a docstring begins to explain settings: at the start of a paragraph, or after a sentence or clause.
BEGINS = re.compile(r"(?:^|(?<=[.;:)]\s))((?:[a-z_][a-z_0-9]*, )*[a-z_][a-z_0-9]*): ")
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
NAMES = {"str": "text", "int": "integer", "float": "number", "bool": "true|false", "NoneType": "null"}


def kinds(name: str | None = None) -> None:
    """List what a recipe or a command chooses by name, or explain a kind and its settings.

    Args:
        name: of a kind, such as image-pairs; all when absent
    """
    chosen = [kind for kind in all_kinds() if name in (None, kind[1])]
    if not chosen:
        raise WrongUse(f"there is no kind {name!r}; {suggested(str(name), [kind for _, kind, _ in all_kinds()])}")
    rows: list[dict[str, Any]] = [{"door": door, "name": kind, "is": summary(part)} for door, kind, part in chosen]
    if name is None:
        return answer(rows, lambda: print_table(rows))
    for row, (_, _, part) in zip(rows, chosen, strict=True):
        row["settings"] = [*settings_of(part)]

    def show() -> None:
        for row in rows:
            say(f"{name}, {row['door']}: {row['is']}")
            before = ""
            for setting in row["settings"]:
                default = setting["default"] if setting["default"] == "required" else f"default {setting['default']}"
                meaning = "as above" if before and setting["meaning"] == before else setting["meaning"]
                say(f"  {setting['setting']}: {setting['type']}; {default}\n      {meaning}".rstrip())
                before = setting["meaning"]

    answer(rows, show)


def all_kinds(here: bool = False) -> Iterator[tuple[str, str, Any]]:
    """All kinds, by what they are chosen as and by name; recipes and trainings too. here: without those of packages."""
    from twinset.contracts.parts import FILTERS
    from twinset.contracts.recipe.models import Recipe, Subset
    from twinset.contracts.source import SOURCES
    from twinset.evaluation.benchmarks import BENCHMARKS
    from twinset.evaluation.metrics.score_kinds import METRICS, NAMED_METRICS
    from twinset.evaluation.scorers.kinds import MODELS
    from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS
    from twinset.generators.decisions.question import QUESTIONS
    from twinset.models.image_engine import IMAGE_ENGINES
    from twinset.models.language_models.settings import LANGUAGE_MODELS
    from twinset.shards.export.formats import EXPORTERS
    from twinset.training.losses.names import OBJECTIVES, REGULARISERS
    from twinset.training.tasks import TASKS, settings_class

    yield from (("recipe", part.__name__.lower(), part) for part in (Recipe, Subset))
    yield from (("training", task, settings_class(task)) for task in TASKS)
    doors: list[Any] = [SOURCES, FILTERS, IMAGE_ENGINES, LANGUAGE_MODELS, CAPTION_SCORERS]
    for door in (*doors, BENCHMARKS, METRICS, NAMED_METRICS, MODELS, QUESTIONS, EXPORTERS, OBJECTIVES, REGULARISERS):
        for name in dict.fromkeys([*door.own(), *([] if here else door.kinds())]):
            yield door.what, name, door.find(name)


def summary(part: Any) -> str:
    """The first paragraph of the docstring of a class, or of what an object is about, opens, writes or names."""
    about = None
    if not (isinstance(part, type) or inspect.isfunction(part)):
        about = getattr(part, "about", None)
        part = resolve_name(part.place) if hasattr(part, "place") else getattr(part, "open", None) or part.write
    text = inspect.cleandoc(about or inspect.getdoc(getattr(part, "func", part)) or "")
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def settings_of(settings: Any) -> Iterator[dict[str, str]]:
    """The settings of a class but its kind, each with the words of the nearest docstring of its bases.

    Those of settings within, which have no kind, follow as ``NAME.SETTING``.
    """
    from pydantic_core import to_json

    from twinset.contracts.doors import types_in
    from twinset.contracts.licences.terms import StatedTerms

    if not isinstance(settings, type) or not hasattr(settings, "model_fields"):
        return
    meanings: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        meanings |= explained(base.__dict__.get("__doc__") or "", settings.model_fields)
    stated = StatedTerms.model_fields if issubclass(settings, StatedTerms) else {}
    for name, field in settings.model_fields.items():
        if name == "kind" or name in stated:
            continue
        default = "required" if field.is_required() else "by other settings"
        if default != "required" and field.default_factory is None:
            default = to_json(field.default).decode()
        kind = written(field)
        yield {"setting": name, "type": kind, "default": default, "meaning": meanings.get(name, "")}
        for inner in types_in(field.annotation):
            if "kind" not in getattr(inner, "model_fields", {"kind"}) and inner.__name__ != "Subset":
                yield from ({**setting, "setting": f"{name}.{setting['setting']}"} for setting in settings_of(inner))


def explained(docstring: str, fields: Any) -> dict[str, str]:
    """What a docstring says of settings, in sentences that begin with ``name:`` or ``a, b:``."""
    meanings: dict[str, str] = {}
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        line = " ".join(paragraph.split()).replace("``", "`")
        end = len(line)
        for start in reversed([*BEGINS.finditer(line)]):
            if fields.keys() >= {*(names := start[1].split(", "))}:
                text, end = line[start.end() : end].strip().rstrip(";."), start.start()
                meanings |= {} if text.startswith("as `") else dict.fromkeys(names, text)
    return meanings


def written(field: Any) -> str:
    """What may be written as a setting: what its mark says, such as a file, else its type in Python's words."""
    bounds = [f"{sign} {getattr(m, of):g}" for m in field.metadata for of, sign in BOUNDS.items() if hasattr(m, of)]
    return ", ".join([_of_type(field.annotation, field.metadata), *bounds])


def _of_type(annotation: Any, marks: Iterable[Any] = ()) -> str:
    for mark in marks:
        if isinstance(what := getattr(getattr(mark, "registry", mark), "what", None), str):
            return what
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of_type(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_of_type, parts))).replace("NoneType", "null")
    if origin in (tuple, list, dict, frozenset):
        return f"{origin.__name__}[{', '.join('...' if part is ... else _of_type(part) for part in parts)}]"
    return re.sub(r"[a-z_.]+\.(?=[A-Z])", "", inspect.formatannotation(annotation))
