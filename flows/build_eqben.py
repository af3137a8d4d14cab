"""The flow ``build-eqben``: plans, has shards made here or in work pools, finalises and describes the dataset."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from PIL import Image
from prefect import flow, get_run_logger, task
from prefect.artifacts import create_image_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from flows.build_shards import SHARDS_A_RUN, build_shards
from flows.inputs import check_devices, check_inputs
from flows.pools import Range, run_ranges
from flows.reporting import reporter
from flows.runners import Runner
from flows.stages import asked_recipe, check_missing, prepare, refuse_mixed_runtimes, state_of
from manifests.canonical import digest
from manifests.errors import BuildFailed, WrongUse
from manifests.recipe import Recipe, load_recipe
from shards import layout
from shards.describe import describe
from shards.finalise import disagreeing, drop_duplicates, forget, remove_leftovers
from shards.progress import Progress, subsets_in
from shards.store import Store

ARTIFACT_PIXELS = (1000, 1600)  # a picture in an artifact is a row in Prefect's database
ROUNDS = 3  # make, find what does not agree, make that again


@task(name="plan", task_run_name="plan-{name}", cache_policy=NO_CACHE, persist_result=False)
def plan_task(out: str, recipe: dict[str, Any], name: str) -> int:
    """Plan a subset; returns its number of shards."""
    return prepare(Store(out), Recipe.model_validate(recipe), name).shards


@flow(name="build-eqben", persist_result=False)
def build_eqben(
    recipe: str,
    out: str,
    only: list[str] | None = None,
    settings: list[str] | None = None,
    workers: int = 0,
    runner: Runner | None = None,
    pools: bool = False,
    shards_a_run: int = 100,
) -> dict[str, Any]:
    """Build the subsets of a recipe; whatever is already done stays. Returns ``{"subsets": {NAME: counts}}``.

    recipe: name of a shipped recipe or path of a YAML file. out: folder or fsspec URL. only: subsets (default all).
    settings: ``KEY.PATH=VALUE`` overrides. workers: shards at a time (0: one a core, or as the pool's deployment says).
    runner: threads where not given. pools: whether shards go to the deployments ``build-shards/POOL`` of each subset's
    pool, ``shards_a_run`` shards a flow run, or are made here.
    Raises `WrongUse` before any work, `BuildFailed` after all that could be done was done.
    """
    loaded = load_recipe(recipe, settings or ()).only(only or ())
    check_inputs(loaded)
    if not pools:
        check_devices(loaded, runner or "threads")
    store = Store(out)
    for name in loaded.subsets:
        plan_task(store.root, loaded.model_dump(mode="json"), name)
    todo = list(loaded.subsets)
    checked: set[str] = set()
    for _ in range(ROUNDS):
        if pools:
            failures = _make_in_pools(store, todo, workers, runner, shards_a_run)
        else:
            failures = _make_here(store, todo, workers, runner or "threads")
        if failures:
            raise BuildFailed("\n".join(failures))
        todo = _settle(store, loaded, checked)
        if not todo:
            break
    else:
        raise BuildFailed(f"shards of {', '.join(todo)} do not stay what their receipts say; is the disk sound?")
    states = [state_of(store, loaded, name) for name in loaded.subsets]
    check_missing(loaded, states)
    describe(store, subsets_in(store))
    store.sweep()
    _artifacts(store, states)
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


def _artifacts(store: Store, states: Iterable[Progress]) -> None:
    """A table of counts and, for each subset, its contact sheet."""
    table = []
    for state in states:
        counts = state.counts()
        row = {"subset": state.stage.name, "planned": counts["planned"], "kept": counts["kept"]}
        table.append({**row, **counts["rejected"], "shards": counts["shards"]})
        if store.size(path := layout.meta(state.stage.name, "look.png")):
            picture = base64.b64encode(_small(store.read(path))).decode()
            create_image_artifact(f"data:image/jpeg;base64,{picture}", key=f"{state.stage.name}-look")
    create_table_artifact(table, key="build-eqben", description=f"What {store.root} holds")


def _small(sheet: bytes) -> bytes:
    with Image.open(io.BytesIO(sheet), formats=("PNG",)) as picture:
        small, stream = picture.convert("RGB"), io.BytesIO()
    small.thumbnail(ARTIFACT_PIXELS)
    small.save(stream, "JPEG", quality=80)
    return stream.getvalue()
