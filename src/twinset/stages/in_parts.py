"""A build in parts, for schedulers: planning a stage, making some of its shards, and finishing are calls of their own.

Planning and finishing hold OUT alone, and wait for others to end; parts need not, also two of the same shards.
"""

import contextlib
import itertools
import logging
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse, suggested
from twinset.contracts.recipe import Recipe, content_of
from twinset.shards.records import read_planned, read_stage
from twinset.shards.storage.claim import Claimed
from twinset.shards.storage.store import Store
from twinset.stages.build import LocalRunner, Runner
from twinset.stages.dataset import finish_dataset, is_finished
from twinset.stages.finish import Progress, Silent, refuse_waiting, settle
from twinset.stages.job import Job, StageState
from twinset.stages.plan import is_planned, prepare, record_recipe

logger = logging.getLogger("twinset")

CLAIM_CHECK_SECONDS = 1.0


def _stage_in(recipe: Recipe, stage: str | None) -> str:
    """The stage that is named, or the only one of a recipe."""
    if stage is None and len(recipe.all) > 1:
        raise WrongUse(f"a part is of one stage; add --stage with one of {', '.join(recipe.all)}")
    if stage is not None and stage not in recipe.all:
        raise WrongUse(f"{recipe.name} has no stage {stage!r}; {suggested(stage, recipe.all)}")
    return stage or next(iter(recipe.all))


def _shards_of(part: int, parts: int, planned: int) -> range:
    """The shards of a part, of as many as are planned."""
    return range(part * planned // parts, (part + 1) * planned // parts)


def plan_stage(job: Job, stage: str | None) -> dict[str, Any]:
    """Finish the stages that a stage reads, all shards of which are made, and plan it (`twinset.build`)."""
    name = _stage_in(job.recipe, stage)
    job.check_inputs(("annotations", "models"), [name])
    with _alone(job.store):
        for earlier in job.recipe.reads(name):
            _settle(job, earlier)
        planned = prepare(job, name)
    return {"stage": name, "planned": planned.planned, "shards": planned.shards}


def make_part(
    job: Job, stage: str | None, part: str, workers: int, runner: Runner, progress: Progress
) -> dict[str, Any]:
    """Make a part, ``K/N``, of the shards of a planned stage, those that are not done, and stop (`twinset.build`)."""
    name = _stage_in(job.recipe, stage)
    given = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part, re.ASCII)
    number, parts = map(int, given.groups() if given else (0, 0))
    if number >= parts:
        raise WrongUse(f"--part {part}: write K/N, where K is 0 to N - 1, such as 0/8 to 7/8")
    _refuse_other_recipes(job, name)
    planned = len(read_planned(job.store, job.recipe.home(name)))
    state = job.state(name, _shards_of(number, parts, planned))
    refuse_waiting(job, name)
    asked, todo = len(state.done) + len(state.todo), state.todo
    if todo:
        job.check_inputs(("media", "models"), [name])
        job.worker(name).refuse_other_versions(state.stage)
        with contextlib.closing(LocalRunner(job, workers, runner, progress, [name])) as here, job.store.tidied():
            progress.begin(name, asked, len(state.done))
            failures = here.make_shards(job, name, state)
            progress.phase(name, "")
        if failures:
            raise BuildFailed("\n".join(failures))
    return {"stage": name, "shards": asked, "made": len(todo)}


def finish_parts(job: Job, stage: str | None, progress: Progress) -> dict[str, Any]:
    """Finish a stage all shards of which are made, or, without its name, all of them and the dataset."""
    with _alone(job.store):
        if stage is not None:
            name = _stage_in(job.recipe, stage)
            return {"stage": name, **_settle(job, name).counts()}
        for name in job.recipe.all:
            _settle(job, name)
        return finish_dataset(job, _refuse, progress)


def unmade_parts(job: Job, parts: int) -> dict[str, Sequence[int]] | None:
    """What is left of a build: by stage the parts of it, of ``parts``, that lack shards; None where all is finished.

    All parts of a stage that is not planned, whose plan would be another now or is not known here (its inputs may lie
    on other machines), or that reads one with parts to make.
    """
    unmade = dict[str, Sequence[int]]()
    for name in job.recipe.all:
        if any(earlier in unmade for earlier in job.recipe.reads(name)) or (state := _as_planned(job, name)) is None:
            unmade[name] = range(parts)
            continue
        job.settled[name], todo, planned = state, {*state.todo}, len(state.planned)
        if lacking := [part for part in range(parts) if not todo.isdisjoint(_shards_of(part, parts, planned))]:
            unmade[name] = lacking
    return unmade if unmade or not is_finished(job) else None


def _as_planned(job: Job, name: str) -> StageState | None:
    """State of a stage whose plan would stay as it is, or None."""
    try:
        job.check_inputs(("annotations", "models"), [name])  # as `plan_stage`
        return job.state(name) if is_planned(job, name) else None
    except (TwinsetError, OSError, ImportError) as error:
        logger.info("%s: planned again, since here its plan cannot be compared: %s", name, error)
        return None


def _settle(job: Job, name: str) -> StageState:
    """Check the shards of a stage, which are all made, and write its index."""
    _refuse_other_recipes(job, name)
    record_recipe(job, name)  # what is no part of shards, such as a title, may be another
    return settle(job, name, _refuse, Silent())


def _refuse(job: Job, name: str, state: StageState) -> Sequence[str]:
    """Makes no shards (`stages.finish.MakeShards`)."""
    few = ", ".join(f"{number:05d}" for number in state.todo[:5]) + ", …" * (len(state.todo) > 5)
    return [
        f"{name}: {len(state.todo):,} of {len(state.planned):,} shards are not made ({few}); make them with --stage "
        f"{name} --part 0/1, and run the same command again"
    ]


def _refuse_other_recipes(job: Job, name: str) -> None:
    """Raise `WrongUse` where a stage is not planned, or was planned from other settings than the recipe's."""
    home, subset = job.recipe.home(name), job.recipe[name]
    if (stage := read_stage(job.store, home)) is None:
        raise WrongUse(f"{job.store.root} holds no plan of {name}; plan it first, with --stage {name} --plan-only")
    own = {**content_of(subset, job.recipe.seed), "count": subset.count}
    there = {**stage.facts["settings"], "count": stage.count}
    if differing := [key for key in {**own, **there} if own.get(key) != there.get(key)]:
        raise WrongUse(
            f"{job.store.root}/{home}: planned from another recipe, or with other settings ({', '.join(differing)}); "
            f"name another --out, or plan it again with --stage {name} --plan-only"
        )


@contextlib.contextmanager
def _alone(store: Store) -> Iterator[None]:
    """`Store.for_one_build`, once the build that holds it has ended."""
    with contextlib.ExitStack() as claim:
        for attempt in itertools.count():
            try:
                claim.enter_context(store.for_one_build())
                break
            except Claimed as error:
                if not attempt:
                    logger.warning("%s; this command waits for its end", str(error).partition(";")[0])
                time.sleep(CLAIM_CHECK_SECONDS)
        yield
