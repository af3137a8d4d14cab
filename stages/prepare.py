"""Plain Python that the flows schedule: preparing a stage, making one shard, finishing a build. No Prefect here."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import generators
from cards.describe import withdraw
from manifests.canonical import digest
from manifests.errors import BuildFailed, TwinsetError, WrongUse
from manifests.genecis_settings import Triplets
from manifests.locations import is_miniature
from manifests.plan import PlannedShard, PlanSummary, plan_digest, plan_file, read_slice, shards_of, write_plan
from manifests.receipt import Receipt, parse_receipt
from manifests.recipe import Recipe
from manifests.stage import ANY_RUNTIME, Stage
from shards.contracts import Generator, Staged
from shards.media.source_media import media_of
from shards.storage import layout
from shards.storage.store import Store
from stages.make import make_shard
from stages.maker import Workshop
from stages.makers import facts_of, workshop, workshop_for
from stages.status import Progress, progress, read_planned, read_stage

logger = logging.getLogger("twinset")

MISSING_REASONS = ("missing-media", "broken-media")


def count_plan(recipe: Recipe, name: str) -> dict[str, Any]:
    """Plan a subset without writing anything below an OUT: its counts, and what planning left out."""
    subset = recipe.subsets[name]
    generator = generators.create(name, subset, recipe.seed)
    planned = shards = 0
    with tempfile.TemporaryDirectory() as scratch:
        # Those of the miniature are a few seconds' work; for others it would be done for nothing.
        if isinstance(subset.source, Triplets) and all(map(is_miniature, subset.source.captions)):
            _make_earlier(scratch, generator, 1)
        for shard in shards_of(islice(generator.plan(), subset.count), subset.shard_size, subset.source.planned_from):
            planned += len(shard)
            shards += 1
    excluded = dict(sorted((+generator.excluded).items()))
    return {"planned": planned, "kept": 0, "rejected": {}, "shards": shards, "excluded": excluded}


def has_earlier(recipe: Recipe, name: str) -> bool:
    """Whether a subset is planned from an earlier stage that is made below OUT."""
    return isinstance(generators.create(name, recipe.subsets[name], recipe.seed), Staged)


def make_earlier(store: Store, recipe: Recipe, name: str, workers: int, told: Callable[[int, int], None]) -> None:
    """Make what a subset is planned from, in so many processes (0: one a core), or go on with it.

    told: called with the numbers of done and of all shards.
    """
    _make_earlier(_earlier(store, name), generators.create(name, recipe.subsets[name], recipe.seed), workers, told)


def prepare(store: Store, recipe: Recipe, name: str, workers: int = 0) -> Stage:
    """Plan a subset below OUT, unless the plan that lies there is of this very recipe, inputs and versions.

    workers: processes for an earlier stage that it is planned from, 0 for one a core.
    """
    # In a process that builds again, what it remembers of the media folders may no longer hold.
    workshop_for.cache_clear()
    shop = workshop(recipe, name)
    _make_earlier(_earlier(store, name), shop.generator, workers)
    facts = facts_of(recipe, name, shop, shop.generator.inputs())
    content = digest(facts)
    before = _planned_before(store, name)
    if before is not None and (before.content, before.count) == (content, shop.subset.count):
        stage = before
    else:
        if before is not None and before.content != content:
            logger.warning("%s: the recipe, its inputs or a version changed; its shards will be made anew", name)
        summary = _write_plan(store, recipe, name, shop)
        stage = Stage(
            name=name,
            facts=facts,
            content=content,
            plan=summary.digest,
            count=shop.subset.count,
            planned=summary.planned,
            shards=len(summary.shards),
            excluded=dict(sorted((+shop.generator.excluded).items())),
        )
    asked = recipe.only([name]).model_dump(mode="json")
    store.write(layout.meta(name, "recipe.json"), json.dumps(asked, indent=1, sort_keys=True).encode())
    if stage is not before:
        # Last: what has a stage record can be resumed, whatever dies in between.
        store.write(layout.meta(name, "stage.json"), stage.to_bytes())
    return stage


def state_of(store: Store, recipe: Recipe, name: str, numbers: Callable[[int], bool] | None = None) -> Progress:
    """Progress of a planned subset, with a look at whether missing inputs have appeared.

    numbers: which shards to look at, where the receipts of all would cost too much.
    """
    stage = read_stage(store, name)
    if stage is None:
        raise WrongUse(f"{store.root} holds no plan of {name}; build it first")
    planned = read_planned(store, name)
    wanted = None if numbers is None else [shard.shard for shard in planned if numbers(shard.shard)]
    return progress(store, stage, planned, media_of(recipe.subsets[name].source), wanted)


def asked_recipe(store: Store, name: str) -> Recipe:
    """The recipe that a subset below OUT was last built with."""
    try:
        return Recipe.model_validate_json(store.read(layout.meta(name, "recipe.json")))
    except (FileNotFoundError, ValueError) as error:
        raise WrongUse(f"{store.root}/{name}: no readable recipe.json below it ({error}); build it first") from error


def make_one(out: str, name: str, number: int) -> dict[str, Any]:
    """Make one shard of a planned subset; returns its receipt. Everything is read from OUT: any worker can do it."""
    store = Store(out)
    stage = read_stage(store, name)
    if stage is None:
        raise WrongUse(f"{store.root} holds no plan of {name}; build it first")
    shop = workshop_for(store.read(layout.meta(name, "recipe.json")), name, stage.to_bytes())
    planned = _cached_plan(out, name, stage.plan)[number]
    file, row_group = plan_file(number)
    if shop.runtime != ANY_RUNTIME and number and not asked_recipe(store, name).allow_mixed_runtimes:
        # Found out before the work rather than after it; finalising looks at all receipts.
        first = _receipt_of(store, stage, 0)
        refuse_mixed_runtimes(f"{store.root}/{name}", {shop.runtime, *([first.machine] if first else [])})
    with store.open(layout.plan(name, file)) as stream:
        candidates = read_slice(stream, row_group, shop.generator.candidate)
    try:
        return make_shard(store, stage, planned, candidates, shop).model_dump(mode="json")
    except OSError as error:
        error.add_note(f"while making {name} shard {number:05d}")
        raise


def refuse_mixed_runtimes(where: str, runtimes: set[str]) -> None:
    """Raise `BuildFailed` when shards of one subset were made on different types of machine, or asked to be.

    runtimes: `manifests.receipt.Receipt.machine` of each. A shard for which memory ran out is none of another type: its
    own receipt says that it has another micro-batch, and a build that runs out of memory now and then must be able to
    end.
    """
    if len(runtimes) > 1:
        raise BuildFailed(
            f"{where}: made on different types of machine, or with another device, threads or micro_batch (runtime "
            f"classes {', '.join(sorted(runtimes))}): neural networks round differently on each. Go on as it was "
            "begun, name another --out, or accept it with --set allow_mixed_runtimes=true"
        )


def needs_process(recipe: Recipe, name: str) -> bool:
    """Whether a subset's shards must be made in child processes."""
    shop = workshop(recipe, name)
    return "process" in (shop.generator.isolation, *(judge.isolation for _, judge in shop.filters))


def check_missing(recipe: Recipe, states: Sequence[Progress]) -> None:
    """Raise `BuildFailed` when more inputs are missing or broken than the recipe allows."""
    for state in states:
        if problem := missing_problem(recipe, state):
            raise BuildFailed(problem)


def missing_media(state: Progress) -> int:
    """How many candidates were rejected for want of their media."""
    return sum(receipt.rejected.get(reason, 0) for receipt in state.done.values() for reason in MISSING_REASONS)


def missing_problem(recipe: Recipe, state: Progress) -> str:
    """What to do when more inputs of a subset are missing or broken than the recipe allows; else empty."""
    name, missing = state.stage.name, missing_media(state)
    if missing <= recipe.max_missing * state.stage.planned:
        return ""
    source = recipe.subsets[name].source
    example = next((media for receipt in state.done.values() for media in receipt.missing), "those")
    return (
        f"{name}: media of {missing} of {state.stage.planned} candidates is missing or broken, such as "
        f"{example} in {source.media_root or source.planned_from}; max_missing is {recipe.max_missing:.2%}. Correct "
        f"subsets.{name}.source or raise max_missing, and run the same command again: shards that lacked "
        "nothing stay"
    )


def _receipt_of(store: Store, stage: Stage, number: int) -> Receipt | None:
    try:
        receipt = parse_receipt(store.read(layout.receipt(stage.name, number)))
    except FileNotFoundError:
        return None
    return receipt if receipt is not None and receipt.content == stage.content else None


def _planned_before(store: Store, name: str) -> Stage | None:
    """The stage record below OUT, if it and its list of shards are whole; else the subset is planned again."""
    try:
        stage = read_stage(store, name)
        if stage is None or plan_digest(read_planned(store, name)) == stage.plan:
            return stage
        problem = "its list of shards is not the plan's"
    except (TwinsetError, FileNotFoundError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    logger.warning("%s: planned again, %s", name, problem)
    return None


def _earlier(store: Store, name: str) -> str:
    return f"{store.root}/{layout.earlier(name)}"


def _make_earlier(
    root: str, generator: Generator, workers: int, told: Callable[[int, int], None] | None = None
) -> None:
    if isinstance(generator, Staged):
        generator.make_earlier(root, workers or os.cpu_count() or 1, told)


def _write_plan(store: Store, recipe: Recipe, name: str, shop: Workshop) -> PlanSummary:
    # Until the new stage record is written, the old one must not vouch for new candidates.
    store.remove(layout.meta(name, "stage.json"))
    withdraw(store, name)
    if isinstance(shop.generator, Staged):
        for report, content in shop.generator.reports().items():
            store.write(layout.meta(name, report), content)
    with store.spool() as spool:
        return write_plan(
            islice(shop.generator.plan(), shop.subset.count),
            shop.generator.candidate,
            shop.subset.shard_size,
            spool,
            lambda spooled, path: store.move_in(spooled, layout.plan(name, path)),
            shop.subset.source.planned_from,
        )


@lru_cache(maxsize=8)
def _cached_plan(out: str, name: str, plan: str) -> list[PlannedShard]:
    return read_planned(Store(out), name)
