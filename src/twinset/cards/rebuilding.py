"""What a card names for whoever makes a subset again: distributions, models, and the machines that made it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.doors import BESIDE, marks
from twinset.contracts.locations import PLACES, is_brought_model, is_model_folder, is_place, symbolic
from twinset.contracts.recipe import Recipe, Subset, content_of
from twinset.contracts.recipe.overrides import PARTS
from twinset.contracts.recipe.strict_yaml import value_at
from twinset.contracts.source import Place, PlacedSettings
from twinset.contracts.stage import ANY_RUNTIME, Stage, runtime_facts
from twinset.models.files import BROUGHT
from twinset.models.spacy_pipelines import parsers_folder
from twinset.shards.metering import read_logs
from twinset.shards.read import finished
from twinset.shards.storage.store import Store

ABSENT = "absent"
#: Settings that the runtime class names.
RUNTIME = ("device", "threads", "micro_batch")
#: Keys of a recipe that a card's recipe has as well.
OF_THE_WHOLE = {"title", "authors", "citation", "date", "max_missing", "allow_mixed_runtimes"}


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """What decides bytes besides recipe and inputs.

    packages: that brought parts, files or models, ``NAME VERSION``, with what each brought. libraries: versions of the
    distributions that a digest names, by name; those of networks where shards say which they had. models: where each
    comes from, by name. machines: what made the shards of each stage with a network, in words. unknown: stages with a
    network whose logs are gone. served: stages that ask a server, whose network nobody can tell.
    """

    packages: Mapping[str, list[str]] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, list[str]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    served: tuple[str, ...] = ()

    @property
    def anywhere(self) -> bool:
        """Whether any machine makes the same bytes."""
        return not self.machines and not self.unknown

    @property
    def built_by_pytorch(self) -> bool:
        """Whether a version is one of PyTorch's own index, such as ``2.9.0+cpu``."""
        return any("+" in one for one in self.libraries.values())

    @property
    def own(self) -> dict[str, list[str]]:
        """Those of the packages that lie in twinset's own repository."""
        return {name: what for name, what in self.packages.items() if name.split()[0] in BESIDE}

    @property
    def others(self) -> dict[str, list[str]]:
        """The packages of other people."""
        return {name: what for name, what in self.packages.items() if name not in self.own}


def rebuilding(store: Store, recipe: Recipe, stages: Iterable[Stage]) -> Rebuilding:
    """What decides the bytes of some finished stages, and of what they read. recipe: of these stages alone."""
    stages = list(stages)
    libraries = {name: version for stage in stages for name, version in stage.facts["libraries"].items()}
    machines, unknown = dict[str, list[str]](), list[str]()
    for stage in stages:
        home = recipe.home(stage.name)
        shards = dict[str, int]()  # a shard of each runtime class
        for number, runtime in finished(store, home).columns("runtime"):
            shards.setdefault(runtime, number)
        shards.pop(ANY_RUNTIME, None)
        logs = read_logs(store, home, shards.values())
        for runtime, number in shards.items():
            facts = logs[number].get("runtime")
            if isinstance(facts, dict) and digest(facts) == runtime and facts.keys() == runtime_facts().keys():
                libraries |= facts["libraries"]
                machines.setdefault(_in_words(facts), []).append(stage.name)
            elif stage.name not in unknown:
                unknown.append(stage.name)
    libraries = {name: one for name, one in sorted(libraries.items(), key=lambda one: one[0].lower()) if one != ABSENT}
    served = tuple(name for name, one in recipe.all.items() if _servers([one]))
    return Rebuilding(packages(stages, recipe), libraries, models(recipe), machines, tuple(unknown), served)


def recipe_of(recipe: Recipe, stage: Stage) -> dict[str, Any]:
    """A recipe of this subset and the stages that it reads, with places for whoever makes it again to fill in."""
    needed = recipe.only([stage.name])
    made = {name: _settings(one, needed.seed) for name, one in needed.all.items()}
    if stage.count is not None:
        made[stage.name]["count"] = stage.count
    parts = {part: {name: made[name] for name in getattr(needed, part)} for part in PARTS if getattr(needed, part)}
    said = needed.model_dump(mode="json", include=OF_THE_WHOLE, exclude_defaults=True)
    return {"name": stage.name, "seed": needed.seed, **said, **parts}


def _settings(subset: Subset, seed: int) -> dict[str, Any]:
    # Without what it would say by itself: a reader finds the rest sooner.
    said = {name for name, field in Subset.model_fields.items() if getattr(subset, name) != field.default}
    settings: dict[str, Any] = {key: value for key, value in content_of(subset, seed).items() if key in said}
    settings |= subset.model_dump(include={"count", "language", "cites", "follows"}, exclude_defaults=True)
    made = [settings["source"], *settings.get("filters", [])]
    for one, part in zip(made, [subset.source, *subset.filters], strict=False):  # without filters, none are said
        _add_execution(one, part)
        _add_places(one, part)
    settings["source"] = {
        key: value
        for key, value in settings["source"].items()
        if value is not None or type(subset.source).model_fields[key].default is not None
    }
    return settings


def _add_places(settings: dict[str, Any], part: PlacedSettings) -> None:
    """Add what says where inputs lie: names of stages and of packages' files, else ``path/to/…``."""
    placed = sorted(part.places(), key=lambda one: one[1].what == "stage")
    for name, mark in {name: mark for name, mark, _ in placed if mark.what != "variable"}.items():
        *where, last = name.split(".")
        value: Any = part
        for key in where:
            value = value[int(key)] if isinstance(value, tuple) else getattr(value, key)
        inner = value_at(settings, where)
        value = getattr(value, last)
        if mark.what == "stage":
            path = value if "/" not in value else f"path/to/{last}"
        else:
            named = [symbolic(one) for one in (value if isinstance(value, tuple) else (value,)) if one is not None]
            brought = [one for one in named if is_place(one)]
            kept = brought if brought and brought == named else [f"path/to/{last}"]
            path = kept if isinstance(value, tuple) else kept[0]
        inner[last] = path


def _add_execution(settings: dict[str, Any], part: PlacedSettings) -> None:
    """Add what the digest leaves out and the runtime class names, where it is not the default."""
    for path, inner in part.parts():
        # Without a place among the settings, it would say so by itself.
        where = value_at(settings, path.split(".")[:-1])
        for name in RUNTIME if where is not None else ():
            if name in inner.execution and (value := getattr(inner, name)) != type(inner).model_fields[name].default:
                where[name] = value


def homepage(name: str) -> str:
    """The address that an installed distribution says of itself; empty where it says none, or is not installed."""
    try:
        about = distribution(name.split()[0]).metadata
    except PackageNotFoundError:
        return ""
    urls = dict(one.split(", ", 1) for one in about.get_all("Project-URL") or () if ", " in one)
    found = {label.lower(): url for label, url in urls.items()}
    known = (found.get(label, "") for label in ("repository", "source", "homepage"))
    return next(filter(None, known), "") or next(iter(about.get_all("Home-page") or ()), "")


def packages(stages: Iterable[Stage], recipe: Recipe) -> dict[str, list[str]]:
    """Packages, with their versions, that brought sources, filters, their parts or inputs, with what each brought.

    recipe: of these stages.
    """
    found: dict[str, list[str]] = {}
    places = [symbolic(place) for one in recipe.all.values() for _, _, place in one.source.places()]
    for name in dict.fromkeys(place.partition(":")[0] for place in places if is_place(place)):
        if package := PLACES.distribution(name):
            found.setdefault(package, []).append(f"the files of {name}")
    for model in dict.fromkeys(filter(is_brought_model, _models(recipe))):
        found.setdefault(BROUGHT.distribution(model), []).append(f"the model {model}")
    for stage in stages:
        for what, made in [("source", stage.facts["generator"]), *(("filter", one) for one in stage.facts["filters"])]:
            parts = {f"{part} of {what} {made['kind']}": package for part, package in made.get("parts", {}).items()}
            if "distribution" in made:
                parts = {f"{what} {made['kind']}": made["distribution"], **parts}
            for part, package in parts.items():
                if part not in found.setdefault(package, []):
                    found[package].append(part)
    return found


def models(recipe: Recipe) -> dict[str, str]:
    """Names of models in a recipe, each with where it comes from; folders of somebody's machine are left out."""
    found = {}
    for model in _models(recipe):
        if is_model_folder(model):
            continue
        if (folder := parsers_folder() / model).is_dir():
            found[model] = f"comes with twinset. {_of_pipeline(folder)}"
        elif is_brought_model(model):
            found[model] = f"comes with {BROUGHT.distribution(model)}. {BROUGHT.find(model).origin}".strip()
        else:
            found[model] = "of the Hugging Face Hub" if "/" in model else "an installed package"
    for part in _servers(recipe.all.values()):
        if isinstance(name := getattr(part, "model", None), str):
            found[name] = "on the server that the recipe names"
    return found


def _servers(stages: Iterable[Subset]) -> list[PlacedSettings]:
    """The settings, of sources, filters and what is within, that name a server to ask."""
    parts = [part for one in stages for placed in one.settings().values() for _, part in placed.parts()]
    return [part for part in parts if any(mark.what == "server" for mark in marks(type(part), Place).values())]


def _of_pipeline(folder: Path) -> str:
    """What spaCy's ``meta.json`` says of a pipeline: what it is, what it was trained on, its licence."""
    about = json.loads((folder / "meta.json").read_text("utf-8"))
    sources = "; ".join(f"{one['name']}, by {one['author']} ({one['license']})" for one in about["sources"])
    return f"{about['description']} Trained on {sources}. Licence: {about['license']}."


def _models(recipe: Recipe) -> Iterator[str]:
    parts = (part for one in recipe.all.values() for placed in one.settings().values() for _, part in placed.parts())
    for part in parts:
        for name, mark in marks(type(part), Place).items():
            if mark.what == "model" and isinstance(value := getattr(part, name), str):
                yield value


def _in_words(facts: Mapping[str, Any]) -> str:
    """The machine of a runtime class, for people."""
    processor = " with ".join(filter(None, (facts["machine"], facts["instructions"])))
    where = f"the processor ({processor})" if facts["device"] == "cpu" else f"{facts['device']} ({processor})"
    threads, batch = facts["threads"], facts["micro_batch"]
    return f"{where}, {threads} thread{'s' * (threads != 1)}, {batch} sample{'s' * (batch != 1)} at a time"
