"""The body of ``build-eqben`` and ``build-genecis``: plan, make shards here or in pools, finalise and describe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from cards.describe import describe
from flows.artifacts import describe_build
from flows.build_shards import SHARDS_A_RUN, build_shards
from flows.pools import Range, run_ranges
from flows.reporting import StageProgress, reporter
from flows.runners import Runner
from manifests.canonical import digest
from manifests.errors import BuildFailed, WrongUse
from manifests.recipe import Recipe
from shards.storage.store import Store
from stages.finalise import disagreeing, drop_duplicates, forget, remove_leftovers
from stages.inputs import check_devices, check_inputs
from stages.prepare import (
    asked_recipe,
    check_missing,
    has_earlier,
    make_earlier,
    prepare,
    refuse_mixed_runtimes,
    state_of,
)
from stages.status import Progress, subsets_in

ROUNDS = 3  # make, find what does not agree, make that again


@task(name="scene-graphs", task_run_name="scene-graphs-{name}", cache_policy=NO_CACHE, persist_result=False)
def scene_graphs_task(out: str, recipe: dict[str, Any], name: str, workers: int) -> None:
    """Parse the captions that a subset is planned from; whatever is parsed already stays."""
    make_earlier(Store(out), Recipe.model_validate(recipe), name, workers, StageProgress(f"{name}-scene-graphs"))


@task(name="plan", task_run_name="plan-{name}", cache_policy=NO_CACHE, persist_result=False)
def plan_task(out: str, recipe: dict[str, Any], name: str, workers: int) -> int:
    """Plan a subset; returns its number of shards."""
    return prepare(Store(out), Recipe.model_validate(recipe), name, workers).shards


def build_subsets(
    recipe: Recipe, out: str, workers: int, runner: Runner | None, pools: bool, shards_a_run: int
) -> dict[str, Any]:
    """The body of a flow that builds a recipe; arguments and errors are those of `flows.build_eqben.build_eqben`."""
    check_inputs(recipe)
    if not pools:
        check_devices(recipe, runner or "threads")
    store = Store(out)
    for name in recipe.subsets:
        asked = recipe.only([name]).model_dump(mode="json")
        if has_earlier(recipe, name):
            scene_graphs_task(store.root, asked, name, workers)
        plan_task(store.root, asked, name, workers)
    todo = list(recipe.subsets)
    checked: set[str] = set()
    for _ in range(ROUNDS):
        if pools:
            failures = _make_in_pools(store, todo, workers, runner, shards_a_run)
        else:
            failures = _make_here(store, todo, workers, runner or "threads")
        if failures:
            raise BuildFailed("\n".join(failures))
        todo = _settle(store, recipe, checked)
        if not todo:
            break
    else:
        raise BuildFailed(f"shards of {', '.join(todo)} do not stay what their receipts say; is the disk sound?")
    states = [state_of(store, recipe, name) for name in recipe.subsets]
    check_missing(recipe, states)
    describe(store, subsets_in(store))
    store.sweep()
    describe_build(store, states)
    return {"subsets": {state.stage.name: state.counts() for state in states}}


def _make_here(store: Store, names: Iterable[str], workers: int, runner: Runner) -> list[str]:
    """Make what is not done, in this process's flow run; returns what failed."""
    failures = []
    for name in names:
        state = _opened(store, name)
        for start in range(0, len(state.todo), SHARDS_A_RUN):
            part = state.todo[start : start + SHARDS_A_RUN]
            try:
                build_shards(store.root, name, part[0], part[-1], workers, runner)
            except BuildFailed as error:
                failures.append(str(error))
    return failures


def _make_in_pools(
    store: Store, names: Iterable[str], workers: int, runner: Runner | None, shards_a_run: int
) -> list[str]:
    """Make what is not done, all subsets at once, each in the work pool that it asks for; returns what failed."""
    ranges = []
    for name in names:
        state, pool = _opened(store, name), asked_recipe(store, name).subsets[name].pool
        for first in sorted({number // shards_a_run * shards_a_run for number in state.todo}):
            last = min(first + shards_a_run, len(state.planned)) - 1
            ranges.append(Range(store.root, name, pool, state.stage.content, state.stage.plan, first, last))
    try:
        run_ranges(ranges, workers, runner)
    except BuildFailed as error:
        return [str(error)]
    return []


def _opened(store: Store, name: str) -> Progress:
    state = state_of(store, asked_recipe(store, name), name)
    reporter().begin(name, len(state.planned), len(state.done))
    if state.done and state.todo:
        get_run_logger().info("%s: %d of %d shards are done", name, len(state.done), len(state.planned))
    return state


def _settle(store: Store, recipe: Recipe, checked: set[str]) -> list[str]:
    """Hash everything, take duplicates out; returns the subsets that have shards to make again.

    checked: receipts, as bytes' digests, that an earlier round of this build has held against their files.
    """
    states: dict[str, Progress] = {}
    again: dict[str, list[int]] = {}
    for name in subsets_in(store):
        try:
            state = state_of(store, asked_recipe(store, name), name)
        except WrongUse as error:
            if name in recipe.subsets:
                raise
            get_run_logger().warning("%s is left out of the search for duplicates: %s", name, error)
            continue
        if name in recipe.subsets:
            receipts = {number: digest(receipt.model_dump(mode="json")) for number, receipt in state.done.items()}
            fresh = {number: one for number, one in state.done.items() if receipts[number] not in checked}
            wrong = disagreeing(store, replace(state, done=fresh))
            checked |= {receipts[number] for number in fresh if number not in wrong}
            if wrong or state.todo:
                again[name] = wrong
                continue
            if not recipe.allow_mixed_runtimes:
                runtimes = {receipt.machine for receipt in state.done.values()}
                refuse_mixed_runtimes(f"{store.root}/{name}", runtimes)
            remove_leftovers(store, state)
        # A subset of an earlier build takes part in the search for duplicates once it is complete.
        if not state.todo:
            states[name] = state
    if not again:
        again = drop_duplicates(store, states)
    for name, numbers in again.items():
        forget(store, name, numbers)
    return list(again)
