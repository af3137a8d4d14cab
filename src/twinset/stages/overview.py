"""Stages at a glance, for people and for ``--json``: planned, done, stale, and what is wrong."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from twinset.cards.lineage import meanings_of
from twinset.cards.terms import TermCounts, lacking
from twinset.contracts.errors import NoDataset, TwinsetError, WrongUse, missing_words, suggested
from twinset.models.engines import metered_engine
from twinset.shards.metering import spent
from twinset.shards.records import stages_in, unplanned_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.costs import estimated
from twinset.stages.job import Job, job_of
from twinset.stages.plan import count_plan, planned_terms, prepare
from twinset.stages.problems import Problem
from twinset.stages.status import StageState, missing_problem, state_of
from twinset.stages.verify import verify_stage

#: Of a stage that cannot be read.
_COUNTS: dict[str, Any] = {"planned": None, "kept": None, "rejected": {}, "shards": None, "excluded": {}}
_UNKNOWN = {**_COUNTS, "examples": [], "meanings": {}, "done": None, "missing": None, "waiting": {}, "stale": {}}
_UNKNOWN |= {"missing_media": None}


def plan_states(job: Job, write: bool, like: Store | None = None) -> dict[str, Any]:
    """Counts, state and estimate of every stage of a recipe, in the order of the DAG.

    Args:
        write: whether plans are written below OUT; a stage that reads one which is not finished waits in any case.
        like: another dataset that estimates are made from.
    """
    if like is not None:
        chosen(like, ())  # refuses what is no dataset
    rows = dict[str, Any]()
    with job.store.for_one_build() if write else nullcontext():
        for name in job.recipe.all:
            row, state = _planned(job, name, write)
            row |= {
                "reads": job.recipe.reads(name),
                "estimate": None,
                "meanings": _meanings(job, name, row["excluded"]),
            }
            if row["planned"] is not None:
                row["estimate"] = estimated(job, name, row["planned"], row["shards"], state, like)
            rows[job.recipe.home(name)] = row
    return _split(rows)


def _planned(job: Job, name: str, write: bool) -> tuple[dict[str, Any], StageState | None]:
    store, home, state = job.store, job.recipe.home(name), None
    for earlier in job.recipe.reads(name):
        try:
            job.earlier(earlier)
        except WrongUse:
            waits = {"kinds": {}, "examples": [], "warnings": [], "state": f"waits for {earlier}"}
            return {**_COUNTS, "kept": 0, **waits}, None
    if write:
        stage = prepare(job, name)
        state = state_of(store, home, job.worker(name).source.media_files())
        waiting = _waiting(job, name, state)
        words = missing_words(**waiting) if waiting else _in_words(state)
        row = {**state.counts(), "kinds": stage.kinds, "examples": stage.examples, "state": words}
        terms: TermCounts = planned_terms(store, layout.meta(home, "plan"), state.planned)
    else:
        counts, terms = count_plan(job.worker(name), store)
        row = {**counts, "state": "counted"}
    lacks = lacking(name, terms) if name in job.recipe.subsets else []
    row["warnings"] = [f"{'; '.join(lacks)}: twinset publish refuses it so"] if lacks else []
    return row, state


def _in_words(state: StageState) -> str:
    done, total = len(state.done), len(state.planned)
    words = "done" if done == total else f"{done:,} of {total:,} shards" if done else "planned"
    return f"{words}, {len(state.stale):,} stale" if state.stale else words


def _meanings(job: Job, name: str, reasons: Iterable[str]) -> dict[str, str]:
    """What these reasons mean, where the stage explains them."""
    known = meanings_of(job.recipe, name)
    return {reason: known[reason] for reason in reasons if reason in known}


def status(store: Store) -> dict[str, Any]:
    """Counts of the stages below OUT, their shards by state, and what is wrong; no file is hashed."""
    return _looked_at(store, (), lambda home: stage_status(*job_of(store, home)))


def verify(store: Store, only: Iterable[str] = (), media: bool = False) -> dict[str, Any]:
    """Counts of stages and everything that is wrong with them, after all was hashed again.

    No package that made the dataset is needed, unless media are hashed too.
    """

    def look(home: str) -> dict[str, Any]:
        state, files = state_of(store, home, trusting=False), None
        if media:
            job, name = job_of(store, home)
            files = job.worker(name).source.media_files()
        return {**state.counts(), "problems": [*verify_stage(store, state, files), *_without_card(store, state)]}

    return _looked_at(store, only, look)


def _looked_at(store: Store, only: Iterable[str], look: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """What ``look`` says of each stage, by its home; of one that cannot be read why."""
    planned, lost = chosen(store, only)
    rows = dict[str, Any]()
    for home in planned:
        try:
            rows[home] = look(home)
        except TwinsetError as error:
            lost[home] = str(error)
    for home, why in lost.items():
        rows[home] = {**_UNKNOWN, "problems": [Problem("stage-unreadable", home, why, "")]}
    return _split(rows)


def stage_status(job: Job, name: str) -> dict[str, Any]:
    """Counts of a built stage, its shards by state, and what is wrong with it."""
    home, worker = job.recipe.home(name), job.worker(name)
    state = state_of(job.store, home, worker.source.media_files())
    engine = metered_engine(worker.source)
    tally = spent(job.store, home) if engine is not None else None
    problem = missing_problem(job.recipe, name, state)
    problems = [Problem("media-missing", home, problem, "")] if problem else _without_card(job.store, state)
    return {
        **state.counts(),
        **({"spent": {**tally._asdict(), "cost": engine.cost(tally)}} if engine and tally else {}),
        "examples": state.stage.examples,
        "meanings": _meanings(job, name, state.stage.excluded),
        "done": len(state.done),
        "missing": len(state.missing),
        "waiting": _waiting(job, name, state),
        "stale": {f"{number:05d}": why for number, why in sorted(state.stale.items())},
        "missing_media": state.missing_media(),
        "problems": problems,
    }


def _without_card(store: Store, state: StageState) -> list[Problem]:
    path, is_subset = f"{state.home}/README.md", "/" not in state.home
    if not is_subset or state.todo or store.size(path) is not None:
        return []
    return [Problem("card-absent", path, "absent, though all shards are done", "run the same build again")]


def _waiting(job: Job, name: str, state: StageState) -> dict[str, int]:
    """How many decisions of people a stage waits for, of how many; empty where it does not wait."""
    waiting = job.worker(name).generator.waiting() if state.todo else None
    return {} if waiting is None else {"missing": waiting.missing, "needed": waiting.needed}


def _split(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows by home as ``{"stages": {NAME: …}, "subsets": {NAME: …}}``."""
    split: dict[str, Any] = {"stages": {}, "subsets": {}}
    for home, row in rows.items():
        split["stages" if "/" in home else "subsets"][home.rsplit("/", 1)[-1]] = row
    return split


def chosen(store: Store, only: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The stages below OUT, or those named: homes of those with a plan, and by home what to do about each other one.

    Raises `WrongUse` when there are none, or a name is unknown.
    """
    planned, lost, wanted = stages_in(store), unplanned_in(store), list(only)
    if not planned and not lost:
        raise NoDataset(f"{store.root} holds no dataset; make one with twinset build RECIPE --out {store.root}")
    names = {home.rsplit("/", 1)[-1]: home for home in (*planned, *lost)}
    for name in wanted:
        if name not in names:
            raise WrongUse(f"{store.root} has no subset {name!r}; {suggested(name, names)}")
    homes = {names[name] for name in wanted} or set(names.values())
    return [home for home in planned if home in homes], {home: why for home, why in lost.items() if home in homes}


def published(store: Store, only: Iterable[str], stages: bool = False) -> list[str]:
    """The subsets to load, show or export.

    Args:
        store: of the dataset.
        only: names of some; all when empty.
        stages: whether stages that are not published can be named too.

    Raises:
        WrongUse: there are none, or a named one has no plan or is not published.
    """
    only = list(only)
    planned, lost = chosen(store, only)
    subsets = [home for home in planned if "/" not in home or (only and stages)]
    if only and len(subsets) < len(planned):
        raise WrongUse(
            f"{store.root}: a stage that is not published is named, and only subsets are loaded and exported; name "
            f"one, look at samples of the stage with twinset look {store.root} --only STAGE, or read its "
            "_meta/index.parquet"
        )
    if lost and (only or not subsets):
        raise WrongUse("\n".join(lost.values()))
    return subsets
