"""The card of a finished subset: a README that Hugging Face reads, and a researcher too."""

from collections.abc import Mapping
from typing import Any

import yaml

from twinset.cards.kinds.registry import CARD_KINDS
from twinset.cards.rendering import render
from twinset.cards.summary import IndexSummary
from twinset.manifests.recipe import Recipe, Subset, content_of
from twinset.manifests.recipe.overrides import PARTS
from twinset.manifests.stage import Stage
from twinset.shards.contracts import ENGINE_REASONS

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(stage: Stage, recipe: Recipe, summary: IndexSummary, numbers: Any, made: str = "", files: str = "") -> str:
    """Markdown with YAML front matter; the same text for the same dataset.

    Args:
        stage: record of the subset.
        recipe: that it was planned from.
        summary: its funnel.
        numbers: its statistics, of its kind's class; of no use for a table.
        made: how it was made, in Markdown.
        files: a digest of what is to be loaded.
    """
    subset = recipe[stage.name]
    source = recipe.origin(stage.name)
    meanings = {**ENGINE_REASONS, **source.meanings, **subset.source.meanings}
    for chosen in subset.filters:
        meanings |= chosen.meanings
    return render(
        f"{source.makes}.md.j2",
        stage=stage,
        source=source,
        kind=CARD_KINDS.get(source.makes),
        noun="candidate" if source.makes == "table" else source.makes.replace("-", " "),
        extension=subset.encoding.format,
        summary=summary,
        numbers=numbers,
        made=made,
        meanings=meanings,
        front=_front_matter(stage, source.makes, subset.language, summary, files),
        recipe=yaml.safe_dump(_recipe(recipe, stage), sort_keys=False),
        libraries=", ".join(f"{name} {version}" for name, version in stage.facts["libraries"].items()),
        brought=_brought(stage),
    )


def _brought(stage: Stage) -> Mapping[str, list[str]]:
    """Packages, with their versions, that brought its source, filters or their parts, with what each brought."""
    found: dict[str, list[str]] = {}
    for what, made in [("source", stage.facts["generator"]), *(("filter", one) for one in stage.facts["filters"])]:
        if "distribution" in made:
            found.setdefault(made["distribution"], []).append(f"{what} {made['kind']}")
        for part, package in made.get("parts", {}).items():
            found.setdefault(package, []).append(f"{part} of {what} {made['kind']}")
    return found


def _front_matter(stage: Stage, makes: str, language: str, summary: IndexSummary, digest: str) -> str:
    kind = CARD_KINDS.get(makes)
    front: dict[str, Any] = {
        "pretty_name": stage.name,
        "license": "other",
        "license_name": "see-the-sources",
        "language": [language],
        "task_categories": list(kind.tasks) if kind else [],
        "tags": [*(kind.tags if kind else ()), *(["webdataset"] if summary.tars else [])],
        "size_categories": [next((name for limit, name in _SIZES if summary.kept < limit), "1M<n<10M")],
    }
    if summary.kept:  # a configuration without files could not be loaded
        files = [{"split": split, "path": f"{split}/*.tar"} for split in summary.kept_by_split]
        if not summary.tars:
            splits = list(summary.kept_by_split)
            files = [{"split": splits[0] if len(splits) == 1 else "index", "path": "_meta/index.parquet"}]
        # load_dataset keeps what it read under the folder's name and a hash of this configuration, in which tars are
        # a mere pattern: without the digest it would return one dataset for another, and the old one after a build.
        front["configs"] = [{"config_name": "default", "description": f"files {digest}", "data_files": files}]
    return yaml.safe_dump(front, sort_keys=False)


def _recipe(recipe: Recipe, stage: Stage) -> dict[str, Any]:
    """A recipe of this subset and the stages that it reads, with places for whoever makes it again to fill in."""
    needed = recipe.only([stage.name])
    made = {name: _settings(one, needed.seed) for name, one in needed.all.items()}
    if stage.count is not None:
        made[stage.name]["count"] = stage.count
    parts = {part: {name: made[name] for name in getattr(needed, part)} for part in PARTS if getattr(needed, part)}
    return {"name": stage.name, "seed": needed.seed, **parts}


def _settings(subset: Subset, seed: int) -> dict[str, Any]:
    settings: dict[str, Any] = content_of(subset, seed)
    del settings["seed"]
    settings |= subset.model_dump(include={"count", "language"}, exclude_defaults=True)
    for name in subset.source.locations:
        *where, last = name.split(".")
        value: Any = subset.source
        inner: Any = settings["source"]
        for key in where:
            value = value[int(key)] if isinstance(value, tuple) else getattr(value, key)
            inner = inner[int(key) if isinstance(inner, list) else key]
        value = getattr(value, last)
        if subset.source.leads_to(name) == "stage":
            path = value if value is None or "/" not in value else f"path/to/{last}"
        else:
            path = [f"path/to/{last}"] if isinstance(value, tuple) else f"path/to/{last}"
        inner[last] = path
    return settings
