"""What a card tells someone who makes a subset again: recipe, distributions, models, and the machines that made it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.doors import marks
from twinset.contracts.locations import PLACES, is_brought_model, is_model_folder, is_place, symbolic
from twinset.contracts.recipe import Recipe, Subset
from twinset.contracts.recipe.models import PARTS
from twinset.contracts.source import Place, PlacedSettings
from twinset.contracts.stage import ANY_RUNTIME, Stage
from twinset.models.files import BROUGHT
from twinset.models.spacy_pipelines import parsers_folder
from twinset.shards.metering import read_logs
from twinset.shards.read import finished
from twinset.shards.storage.store import Store

ABSENT = "absent"
ON_SERVER = "on the server that the recipe names: what it is asked again it may answer otherwise"
MACHINE = "{device} ({machine} {instructions}), threads: {threads}, samples at a time: {micro_batch}"
#: Settings of how the work is done that the runtime class names.
RUNTIME = ("device", "threads", "micro_batch")
#: Keys of a recipe that a card's recipe has as well.
OF_THE_WHOLE = {"title", "authors", "citation", "date", "max_missing", "allow_mixed_runtimes"}


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """What decides bytes besides recipe and inputs.

    packages: with their versions, and what each brought. libraries: versions of what a digest or a runtime class names.
    models: where each comes from, by name. machines: stages with a network, by the machine that made their shards.
    """

    packages: Mapping[str, list[str]] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, list[str]] = field(default_factory=dict)


def rebuilding(store: Store, recipe: Recipe, stages: Sequence[Stage]) -> Rebuilding:
    """What decides the bytes of some finished stages, and of no others of the recipe."""
    machines = defaultdict[str, list[str]](list)
    libraries = {name: version for stage in stages for name, version in stage.facts["libraries"].items()}
    for stage in stages:
        home = recipe.home(stage.name)
        runtimes = {runtime: number for number, runtime in finished(store, home).columns("runtime")}
        runtimes.pop(ANY_RUNTIME, None)
        logs = read_logs(store, home, runtimes.values())
        for runtime, number in runtimes.items():
            facts = logs[number].get("runtime")
            if isinstance(facts, dict) and digest(facts) == runtime:
                libraries |= facts["libraries"]
                machines[MACHINE.format(**facts)].append(stage.name)
            else:  # the log is gone, or somebody wrote into it
                machines["not recorded, but for a digest in _meta/receipts"].append(stage.name)
    libraries = {name: version for name, version in sorted(libraries.items()) if version != ABSENT}
    return Rebuilding(packages(stages, recipe), libraries, models(recipe), dict(machines))


def recipe_of(recipe: Recipe, stage: Stage) -> dict[str, Any]:
    """A recipe of this subset and what it reads, without defaults, and with places to fill in where inputs lie."""
    needed = recipe.only([stage.name])
    rest = needed.model_dump(mode="json", include=OF_THE_WHOLE, exclude_defaults=True)
    parts = {part: {name: _subset(subset) for name, subset in getattr(needed, part).items()} for part in PARTS}
    for stages in parts.values():
        if stage.name in stages and stage.count is not None:
            stages[stage.name]["count"] = stage.count
    return {"name": stage.name, "seed": needed.seed, **rest, **{part: kept for part, kept in parts.items() if kept}}


def _subset(subset: Subset) -> dict[str, Any]:
    rest = subset.model_dump(mode="json", exclude={"source", "filters", "pool"}, exclude_defaults=True)
    filters = [_settings(judge) for judge in subset.filters]
    return {"source": _settings(subset.source), **({"filters": filters} if filters else {}), **rest}


def _settings(settings: PlacedSettings) -> dict[str, Any]:
    dumped, written = settings.model_dump(mode="json"), dict[str, Any](kind=settings.kind)
    places = {name: mark for name, mark in marks(type(settings), Place).items() if mark.what != "variable"}
    for name, setting in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value == setting.get_default(call_default_factory=False) or name == "kind":
            continue
        if isinstance(value, PlacedSettings):
            written[name] = _settings(value)
        elif isinstance(value, tuple) and any(isinstance(item, PlacedSettings) for item in value):
            written[name] = [_settings(item) for item in value]
        elif name in places and (places[name].what == "stage" or places[name].held(value)):
            written[name] = _place(places[name], name, value)
        elif name not in settings.execution or name in RUNTIME:
            written[name] = dumped[name]
    return written


def _place(mark: Place, name: str, value: Any) -> Any:
    """Where an input lies: the name of a stage or of a package's file, else ``path/to/…``."""
    if mark.what == "stage":
        return f"path/to/{name}" if "/" in (value or "") else value
    places = [symbolic(place) for place in (value if isinstance(value, tuple) else (value,))]
    named = places if all(map(is_place, places)) else [f"path/to/{name}"]
    return named if isinstance(value, tuple) else named[0]


def packages(stages: Iterable[Stage], recipe: Recipe) -> dict[str, list[str]]:
    """Packages, with their versions, that brought sources, filters, their parts, files or models, with these."""
    places = [symbolic(place) for subset in recipe.all.values() for _, _, place in subset.source.places()]
    folders = [place.partition(":")[0] for place in places if is_place(place)]
    brought = [(PLACES.distribution(folder), f"the files of {folder}") for folder in folders]
    brought += [(BROUGHT.distribution(name), f"the model {name}") for name in models(recipe) if is_brought_model(name)]
    for facts in (stage.facts for stage in stages):
        for what, made in [("source", facts["generator"]), *(("filter", judge) for judge in facts["filters"])]:
            brought.append((made.get("distribution", ""), f"{what} {made['kind']}"))
            parts = made.get("parts", {}).items()
            brought += [(package, f"{part} of {what} {made['kind']}") for part, package in parts]
    by_package = defaultdict[str, list[str]](list)
    for package, what in dict.fromkeys(brought):
        by_package[package].append(what)
    by_package.pop("", None)  # of twinset itself
    return dict(by_package)


def models(recipe: Recipe) -> dict[str, str]:
    """Names of models in a recipe, each with where it comes from; folders of somebody's machine are left out."""
    parts = [part for made in recipe.all.values() for placed in made.settings().values() for _, part in placed.parts()]
    origins = dict[str, str]()
    for part in parts:
        for name, mark in marks(type(part), Place).items():
            value = getattr(part, "model" if mark.what == "server" else name, None)
            if mark.what == "server" and value is not None:
                origins[value] = ON_SERVER
            elif mark.what == "model" and isinstance(value, str) and not is_model_folder(value):
                origins[value] = _origin(value)
    return origins


def _origin(model: str) -> str:
    if (parsers_folder() / model).is_dir():
        return "comes with twinset"
    if is_brought_model(model):
        return f"comes with {BROUGHT.distribution(model)}. {BROUGHT.find(model).origin}".strip()
    return "of the Hugging Face Hub" if "/" in model else "an installed package"
