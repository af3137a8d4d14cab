"""Building a recipe: each stage is planned, made and indexed, in the order of the DAG; then the dataset is finished.

What makes the shards (threads and processes here, or runs in Prefect's work pools) is a function of a stage that
returns what failed; everything else is the same for all of them.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import Any, Protocol

from twinset.contracts.errors import BuildFailed, DecisionsMissing, TwinsetError, WrongUse, in_words
from twinset.shards.ledger import LEDGER
from twinset.shards.records import subsets_in
from twinset.shards.storage import layout
from twinset.stages.description_record import has_card, is_described, keep_description
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.finalise import disagreeing, forget, remove_leftovers
from twinset.stages.index import is_indexed, summarise, write_index
from twinset.stages.job import Job, job_of, refuse_mixed_runtimes
from twinset.stages.missing import nothing_there
from twinset.stages.plan import prepare
from twinset.stages.status import OTHER_VERSION, StageState, missing_problem, state_of

logger = logging.getLogger("twinset")

ROUNDS = 3  # make, find what does not agree, make that again

#: Makes shards of a stage, by its name; returns a sentence for each that failed.
RunShards = Callable[[Job, str, StageState], Sequence[str]]


class Progress(Protocol):
    """Reported to by a build, from several threads."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """A stage has shards to make: ``done`` of ``total`` are made already."""

    def advance(self, stage: str) -> None:
        """One more shard of a stage is made."""

    def samples(self, stage: str, made: int, planned: int) -> None:
        """Candidates of a stage that are made, those of shards in the making too."""

    def phase(self, stage: str, doing: str) -> None:
        """A stage does something other than making shards, such as ``planning``; empty when it has ended."""


class Silent:
    """Shows nothing."""

    def begin(self, stage: str, total: int, done: int) -> None: ...

    def advance(self, stage: str) -> None: ...

    def samples(self, stage: str, made: int, planned: int) -> None: ...

    def phase(self, stage: str, doing: str) -> None: ...


def build(job: Job, run: RunShards, progress: Progress) -> dict[str, Any]:
    """Build all stages of a recipe, independent ones side by side; whatever is done already stays.

    Returns ``{"subsets": {NAME: counts}}``; of a recipe of stages alone also ``"stages"``. Raises as `twinset.build`.
    """
    sorter = TopologicalSorter({name: job.recipe.reads(name) for name in job.recipe.all})
    sorter.prepare()
    failures: dict[str, BaseException] = {}
    pool = ThreadPoolExecutor(max(len(job.recipe.all), 1), "stage")
    try:
        running: dict[Future[None], str] = {}
        while sorter.is_active():
            for name in sorter.get_ready():
                running[pool.submit(build_stage, job, name, run, progress)] = name
            if not running:
                break  # what is left reads a stage that failed or waits
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                if error := future.exception():
                    failures[name] = error
                else:
                    sorter.done(name)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for the shards of all stages
    waits = [error for error in failures.values() if isinstance(error, DecisionsMissing)]
    unfinished = [name for name in job.recipe.all if name not in job.settled]
    if len(waits) < len(failures):
        raise _failure(failures, [name for name in unfinished if name not in failures])
    made = finish(job, run, progress, unfinished)
    if waits:
        raise DecisionsMissing.of_all(waits)
    return made


def _failure(failures: Mapping[str, BaseException], not_begun: Sequence[str]) -> BaseException:
    """One error for all stages that failed. not_begun: those that read one of them."""
    messages = []
    for name, error in failures.items():
        logger.info("%s failed", name, exc_info=error)
        messages.append(in_words(error) if isinstance(error, TwinsetError) else f"{name}: {in_words(error)}")
    if not_begun:
        messages.append(f"not built, because they read a stage that failed or waits: {', '.join(not_begun)}")
    kind = WrongUse if all(isinstance(error, WrongUse) for error in failures.values()) else BuildFailed
    return kind("\n".join(messages))


def build_stage(job: Job, name: str, run: RunShards, progress: Progress) -> None:
    """Plan a stage, make the shards that are not done, and write its index; every stage that it reads is finished."""
    try:
        progress.phase(name, "planning")
        prepare(job, name)
        settle(job, name, run, progress)
    finally:
        progress.phase(name, "")


def refuse_waiting(job: Job, name: str) -> None:
    """Raise `DecisionsMissing` where people have not decided enough to make a stage."""
    if (waiting := job.worker(name).generator.waiting()) is not None:
        raise DecisionsMissing(job.store.root, {name: waiting})


def settle(job: Job, name: str, run: RunShards, progress: Progress) -> StageState:
    """Make shards until all are done and agree with their receipts, then write the index.

    Raises `DecisionsMissing` where people have not decided enough to make them.
    """
    worker, store = job.worker(name), job.store
    media = worker.source.media_files()
    for _ in range(ROUNDS):
        state = state_of(store, worker.home, media)
        if state.todo:
            refuse_waiting(job, name)
            if not state.done and (problem := nothing_there(store, job.recipe, name, state, worker)):
                raise BuildFailed(problem)
            progress.begin(name, len(state.planned), len(state.done))
            if failures := run(job, name, state):
                raise BuildFailed("\n".join(failures))
            state = state_of(store, worker.home, media)
        progress.phase(name, "checking")
        state, wrong = disagreeing(store, state)
        forget(store, worker.home, wrong)
        if not wrong and not state.todo:
            break
    else:
        ledger = f"{store.root}/{layout.meta(worker.home, LEDGER)}"
        raise BuildFailed(
            f"{name}: shards do not stay what their receipts say; remove {ledger} and run the same build again, and if "
            "that does not help have the disk checked"
        )
    if not job.recipe.allow_mixed_runtimes:
        runtimes = {asked or own for _, asked, own in state.done.columns("requested_runtime", "runtime")}
        refuse_mixed_runtimes(f"{store.root}/{worker.home}", runtimes)
    if not is_indexed(store, state):
        remove_leftovers(store, state)
        progress.phase(name, "writing the index")
        write_index(store, state, worker.source.makes, worker.generator.row_schema, worker.generator.numbers)
    job.settled[name] = state
    return state


def finish(job: Job, run: RunShards, progress: Progress, unfinished: Collection[str] = ()) -> dict[str, Any]:
    """What needs all stages: missing media, duplicates among subsets, and what the dataset says of itself.

    unfinished: the stages that wait for people, and those that read them, without which the others are finished.
    """
    for name, state in job.settled.items():
        if problem := missing_problem(job.recipe, name, state):
            raise BuildFailed(problem)
    if not unfinished or any(name in job.settled for name in job.recipe.subsets):
        published = _published(job)
        if not is_described(job.store, published, job.recipe):
            progress.phase("dataset", "looking for duplicates")
            published |= _take_out_duplicates(job, published, run, progress)
            progress.phase("dataset", "describing")
            _describe(job, published)
        progress.phase("dataset", "")
    counts = {name: job.settled[name].counts() for name in job.recipe.all if name in job.settled}
    made = {"subsets": {name: counts[name] for name in job.recipe.subsets if name in counts}}
    return made if job.recipe.subsets else {**made, "stages": counts}


def is_finished(job: Job) -> bool:
    """Whether `finish` has nothing to do, where the shards of all stages of the recipe are made."""
    indexed = all(is_indexed(job.store, state) for state in job.settled.values())
    return indexed and is_described(job.store, _published(job), job.recipe)


def _published(job: Job) -> dict[str, StageState]:
    """All finished subsets below OUT by home, those of earlier builds too."""
    published = {}
    for home in subsets_in(job.store):
        try:
            own = job.settled.get(home) if home in job.recipe.subsets else None
            state = own or state_of(job.store, home)
        except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
            logger.warning("%s is left as it is: %s", home, error)
            continue
        if not state.todo:
            published[home] = state
        elif OTHER_VERSION in state.stale.values():
            logger.warning("left as they are, %s; run their builds again: %s", OTHER_VERSION, home)
    return published


def _take_out_duplicates(
    job: Job, published: Mapping[str, StageState], run: RunShards, progress: Progress
) -> dict[str, StageState]:
    """Drop duplicates and bring the indices of the subsets that changed up to date; returns all but tables."""

    def settle_again(home: str) -> StageState:
        owner, name = (job, home) if home in job.recipe.subsets else job_of(job.store, home)
        if home not in job.settled:  # planned by another build, maybe with other libraries
            owner.worker(name).refuse_other_versions(states[home].stage)
        return settle(owner, name, run, progress)

    states = {home: state for home, state in published.items() if state.makes != "table"}
    for home, state in states.items():
        if not is_indexed(job.store, state, hashed=True):  # of another build that was killed, or it was damaged since
            job.store.remove(layout.meta(home, "index.json"))
            states[home] = settle_again(home)
    for _ in range(ROUNDS):
        changed, again = drop_duplicates(job.store, states)
        for home in {*changed, *again}:
            forget(job.store, home, again.get(home, ()))
            states[home] = settle_again(home)
        if not again:
            return states
    raise BuildFailed(f"duplicates in {', '.join(sorted(again))} change with every look; run the same build again")


def _describe(job: Job, published: Mapping[str, StageState]) -> None:
    """Write the cards of subsets, their pictures, the page and the card of all."""
    from twinset.cards.describe import describe, show  # they plot and draw
    from twinset.cards.publication import write_overview

    for home, state in published.items():
        if not has_card(job.store, home, state, job.recipe):
            describe(job.store, home, summarise(job.store, state))
            keep_description(job.store, home, state, job.recipe, {})  # a build that is killed now goes on from here
    show(job.store, published)
    write_overview(job.store, published)
    for home, state in published.items():
        keep_description(job.store, home, state, job.recipe, published)
