"""A build in parts, for schedulers: planning a stage, making some of its shards, and finishing are calls of their own.

Whoever plans or finishes holds OUT alone, and waits for others to end; parts need not, also two of the same shards.
"""

import contextlib
import logging
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from twinset.contracts.errors import BuildFailed, DecisionsMissing, TwinsetError, WrongUse, suggested
from twinset.contracts.recipe import Recipe, content_of
from twinset.shards.records import planned_stage, read_planned, read_stage
from twinset.shards.storage.claim import Claimed
from twinset.shards.storage.store import Store
from twinset.stages.build import Progress, Silent, finish, is_finished, settle
from twinset.stages.job import Job, check_inputs, forget_workers, job_of
from twinset.stages.plan import is_planned, prepare
from twinset.stages.run_here import LocalRunner, Runner, check_runner
from twinset.stages.stage_worker import refuse_other_versions
from twinset.stages.status import StageState, state_of

logger = logging.getLogger("twinset")

CLAIM_CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Shards:
    """Some of the shards of a stage: ``first`` to ``last``, or part ``first`` of ``parts``, which begin with 0."""

    first: int
    last: int = 0
    parts: int = 0

    @classmethod
    def named(cls, shards: str | None, part: str | None) -> Self:
        """From ``A-B``, both included, or from ``K/N``."""
        if shards is not None:
            given = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", shards, re.ASCII)
            first, last = (int(given[1]), int(given[2] or given[1])) if given else (1, 0)
            if last < first:
                raise WrongUse(f"--shards {shards}: write A-B, the first and the last, such as 400-499; 0 is the first")
            return cls(first, last)
        given = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part or "", re.ASCII)
        first, parts = (int(given[1]), int(given[2])) if given else (0, 0)
        if first >= parts:
            raise WrongUse(f"--part {part}: write K/N, where K is 0 to N - 1, such as 0/8 to 7/8")
        return cls(first, parts=parts)

    def of(self, name: str, planned: int) -> range:
        """Their numbers, of as many as are planned; raises `WrongUse` where there are fewer."""
        if self.parts:
            return range(self.first * planned // self.parts, (self.first + 1) * planned // self.parts)
        if self.last >= planned:
            there = f"0 to {planned - 1}" if planned else "none"
            raise WrongUse(
                f"{name}: {planned:,} shards are planned ({there}), not shards {self.first} to {self.last}; name some "
                "of those, or make --part K/N, which needs no number of shards"
            )
        return range(self.first, self.last + 1)


def stage_in(recipe: Recipe, stage: str | None) -> str:
    """The stage that is named, or the only one of a recipe."""
    if stage is None and len(recipe.all) > 1:
        raise WrongUse(f"a part is of one stage; add --stage with one of {', '.join(recipe.all)}")
    if stage is not None and stage not in recipe.all:
        raise WrongUse(f"{recipe.name} has no stage {stage!r}; {suggested(stage, recipe.all)}")
    return stage or next(iter(recipe.all))


def plan_stage(recipe: Recipe, out: str, stage: str | None) -> dict[str, Any]:
    """Finish the stages that a stage reads, all shards of which are made, and plan it.

    Returns:
        ``{"stage", "planned", "shards"}``: its name, candidates and shards.

    Raises:
        WrongUse: an input is wrong, or a stage that it reads is not planned.
        BuildFailed: shards of a stage that it reads are not made.
    """
    name, job = stage_in(recipe, stage), Job(recipe, Store(out))
    check_inputs(recipe, ("annotations", "models"), [name])
    with _alone(job.store):
        for earlier in recipe.reads(name):
            _settle(job, earlier)
        planned = prepare(job, name)
    return {"stage": name, "planned": planned.planned, "shards": planned.shards}


def make_part(
    recipe: Recipe,
    out: str,
    stage: str | None,
    shards: Shards,
    workers: int = 0,
    runner: Runner = "threads",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make some shards of a stage that is planned, those that are not done, and stop.

    Returns:
        ``{"stage", "shards", "made"}``: how many shards these are, and how many of them were not done before.

    Raises:
        WrongUse: the stage is not planned, or from another recipe; there are fewer shards.
        BuildFailed: some failed, or this machine would make other bytes; the same call makes those.
        DecisionsMissing: the stage waits for people.
    """
    name, store = stage_in(recipe, stage), Store(out)
    _refuse_other_recipes(recipe, store, name)
    job, name, state = open_part(store, recipe.home(name), shards)
    _refuse_waiting(job, name)
    asked, todo = len(state.done) + len(state.todo), state.todo
    if not todo:
        return {"stage": name, "shards": asked, "made": 0}
    check_inputs(job.recipe, ("media", "models"), [name])
    check_runner(job.recipe, runner, [name])
    refuse_other_versions(state.stage, job.worker(name), recipe.seed)
    progress = progress or Silent()
    here = LocalRunner(workers, runner, progress)
    try:
        with store.tidied():
            progress.begin(name, asked, len(state.done))
            failures = here.run(job, name, state)
            progress.phase(name, "")
    finally:
        here.close()
    if failures:
        raise BuildFailed("\n".join(failures))
    return {"stage": name, "shards": asked, "made": len(todo)}


def open_part(store: Store, home: str, shards: Shards) -> tuple[Job, str, StageState]:
    """Some shards of a planned stage, on a machine that knows nothing but OUT: job, the stage's name, their state."""
    forget_workers()
    job, name = job_of(store, home)
    wanted = shards.of(name, len(read_planned(store, home)))
    return job, name, state_of(store, home, job.worker(name).source.media_files(), wanted)


def finish_parts(recipe: Recipe, out: str, stage: str | None, progress: Progress | None = None) -> dict[str, Any]:
    """Finish a stage all shards of which are made, or, without its name, all of them and the dataset.

    Returns:
        As `stages.build.build`; of one stage ``{"stage"}`` with its counts.

    Raises:
        WrongUse: a stage is not planned, or from another recipe.
        BuildFailed: shards are missing, or are not what their receipts say.
    """
    job = Job(recipe, Store(out))
    with _alone(job.store):
        for name in recipe.all if stage is None else [stage_in(recipe, stage)]:
            _settle(job, name)
        return (
            finish(job, _refuse, progress or Silent())
            if stage is None
            else {"stage": name, **job.settled[name].counts()}
        )


def unmade_parts(recipe: Recipe, out: str, parts: int) -> dict[str, Sequence[int]] | None:
    """What is left of a build: by stage the parts of it, of ``parts``, that lack shards; None where all is finished.

    All parts of a stage that is not planned, whose plan would be another now or is not known here (its inputs may lie
    on other machines), or that reads one with parts to make.
    """
    job, states, unmade = Job(recipe, Store(out)), dict[str, StageState](), dict[str, Sequence[int]]()
    for name in recipe.all:
        if any(one in unmade for one in recipe.reads(name)) or (state := _as_planned(job, name)) is None:
            unmade[name] = range(parts)
            continue
        states[name], todo, planned = state, {*state.todo}, len(state.planned)
        if lacking := [part for part in range(parts) if todo & {*Shards(part, parts=parts).of(name, planned)}]:
            unmade[name] = lacking
    return unmade if unmade or not is_finished(job, states) else None


def _as_planned(job: Job, name: str) -> StageState | None:
    """State of a stage whose plan would stay as it is, or None."""
    home = job.recipe.home(name)
    try:
        stage = read_stage(job.store, home)
        if stage is None or stage.facts["settings"] != content_of(job.recipe[name], job.recipe.seed):
            return None
        check_inputs(job.recipe, ("annotations", "models"), [name])  # as whoever plans
        if not is_planned(job, name):
            return None
        return state_of(job.store, home, job.worker(name).source.media_files())
    except (TwinsetError, OSError, ImportError) as error:
        logger.info("%s: planned again, since here its plan cannot be compared: %s", name, error)
        return None


def _settle(job: Job, name: str) -> None:
    """Check the shards of a stage, which are all made, and write its index."""
    _refuse_other_recipes(job.recipe, job.store, name)
    _refuse_waiting(job, name)
    settle(job, name, _refuse, Silent())


def _refuse_waiting(job: Job, name: str) -> None:
    """Raise `DecisionsMissing` where people have not decided enough to make a stage."""
    if (waiting := job.worker(name).generator.waiting()) is not None:
        raise DecisionsMissing(job.store.root, {name: (waiting.missing, waiting.needed)})


def _refuse(job: Job, name: str, state: StageState) -> Sequence[str]:
    """Makes no shards (`stages.build.RunShards`)."""
    few = ", ".join([*(f"{number:05d}" for number in state.todo[:5]), *["…"][: len(state.todo) > 5]])
    return [
        f"{name}: {len(state.todo):,} of {len(state.planned):,} shards are not made ({few}); make them with --stage "
        f"{name} --part 0/1, and run the same command again"
    ]


def _refuse_other_recipes(recipe: Recipe, store: Store, name: str) -> None:
    """Raise `WrongUse` where a stage is not planned, or was planned from other settings than the recipe's."""
    home = recipe.home(name)
    if read_stage(store, home) is None:
        raise WrongUse(f"{store.root} holds no plan of {name}; plan it first, with --stage {name} --plan-only")
    there, own = planned_stage(store, home).facts["settings"], content_of(recipe[name], recipe.seed)
    if there != own:
        differing = [key for key in {**own, **there} if own.get(key) != there.get(key)]
        raise WrongUse(
            f"{store.root}/{home}: planned from another recipe, or with other settings ({', '.join(differing)}); name "
            f"another --out, or plan it again with --stage {name} --plan-only"
        )


@contextlib.contextmanager
def _alone(store: Store) -> Iterator[None]:
    """`Store.for_one_build`, once whoever builds there has ended."""
    with contextlib.ExitStack() as claim:
        said = False
        while True:
            try:
                claim.enter_context(store.for_one_build())
                break
            except Claimed as error:
                if not said:
                    logger.warning("%s; this command waits for its end", str(error).partition(";")[0])
                said = True
                time.sleep(CLAIM_CHECK_SECONDS)
        yield
