"""Generators and filters of a subset, as its plan wants them: a worker that would make other bytes refuses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import filters
import generators
from manifests.canonical import digest
from manifests.errors import BuildFailed
from manifests.recipe import Recipe, content_of
from manifests.stage import Stage, parse_stage, stage_facts
from shards.contracts import Generator
from stages.inputs import check_inputs
from stages.maker import Workshop

BASE_LIBRARIES = ("numpy", "pillow", "pyarrow")  # the last writes the rows


def workshop(recipe: Recipe, name: str) -> Workshop:
    """Generator and filters of a subset."""
    subset = recipe.subsets[name]
    return Workshop(
        subset,
        generators.create(name, subset, recipe.seed),
        [(chosen.kind, filters.create(chosen)) for chosen in subset.filters],
    )


def facts_of(recipe: Recipe, name: str, shop: Workshop, inputs: str) -> dict[str, Any]:
    """All that decides the bytes of a subset's shards. inputs: `shards.contracts.Generator.inputs`."""
    libraries = {*BASE_LIBRARIES, *shop.generator.libraries}
    described = []
    for kind, judge in shop.filters:
        weights: dict[str, str] = judge.weights() if hasattr(judge, "weights") else {}
        if not weights:  # a network's libraries belong to the runtime class: GPU workers have other builds
            libraries |= set(judge.libraries)
        described.append({"kind": kind, "version": judge.version, "weights": weights})
    return stage_facts(
        content_of(shop.subset, recipe.seed),
        inputs,
        {"kind": shop.subset.source.kind, "version": shop.generator.version, **_weights(shop.generator)},
        described,
        libraries,
    )


@lru_cache(maxsize=8)
def workshop_for(recipe: bytes, name: str, planned: bytes) -> Workshop:
    """Generator and filters for the shards of a plan, loaded once a process: workers make many shards of one subset.

    recipe, planned: bytes of the subset's recipe.json and stage.json. Raises `BuildFailed` when this machine would make
    other bytes than planned.
    """
    stage = parse_stage(name, planned)
    loaded = Recipe.model_validate_json(recipe)
    check_inputs(loaded.only([name]), annotations=False)
    shop = workshop(loaded, name)
    # Annotations have given all that they say to the plan, and workers need none; scenes are made from assets again.
    inputs = shop.generator.inputs() if shop.subset.source.drawn else stage.facts["inputs"]
    _refuse_other_versions(stage, facts_of(loaded, name, shop, inputs))
    return shop.on_this_machine()


def _refuse_other_versions(stage: Stage, here: dict[str, Any]) -> None:
    if digest(here) == stage.content:
        return
    planned = stage.facts
    differing = [key for key in planned if key != "libraries" and planned[key] != here.get(key)]
    differing += [
        f"{name} ({version} in the plan, {here['libraries'].get(name, 'absent')} here)"
        for name, version in planned["libraries"].items()
        if here["libraries"].get(name) != version
    ]
    raise BuildFailed(
        f"{stage.name}: this worker would make other bytes than planned, it differs in {', '.join(differing)}; bring "
        "its checkout, its environment (make env) and its inputs (weights of a model, manifest of assets, names of "
        "backgrounds) to those that planned, or build again to plan with these"
    )


def _weights(generator: Generator) -> dict[str, dict[str, str]]:
    """Digests of the weights that a generator draws with; nothing for one that draws with none."""
    return {"weights": generator.weights()} if hasattr(generator, "weights") else {}
