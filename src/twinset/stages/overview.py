"""Stages at a glance, for people and for ``--json``: planned, done, stale, and what is wrong."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from statistics import median
from typing import Any

from twinset.cards.lineage import meanings_of
from twinset.cards.terms import TermCounts, lacking
from twinset.contracts.errors import TwinsetError, WrongUse, missing_words, suggested
from twinset.models.engines import metered_engine
from twinset.shards.metering import Tally, read_logs, spent, tally_in, total
from twinset.shards.records import stages_in, unplanned_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.job import Job, job_of
from twinset.stages.plan import count_plan, planned_terms, prepare
from twinset.stages.status import Problem, StageState, again, missing_problem, state_of
from twinset.stages.verify import verify_stage

LOGS = 16  # of finished shards that an estimate reads, evenly spread: on an object store each is a request
#: Of a stage that is not planned, and of one that cannot be read.
_UNKNOWN: dict[str, Any] = {"planned": None, "kept": None, "rejected": {}, "shards": None, "excluded": {}}
_UNREAD: dict[str, Any] = {"examples": [], "meanings": {}, "waiting": {}, "stale": {}}
_UNREAD |= {"done": None, "missing": None, "missing_media": None}


def plan_states(job: Job, write: bool, like: Store | None = None) -> dict[str, Any]:
    """Counts, state and estimate of every stage of a recipe, in the order of the DAG.

    write: whether plans are written below OUT; a stage that reads one which is not finished waits in any case. like:
    another dataset that estimates are made from.
    """
    if like is not None:
        chosen(like, ())  # refuses what is no dataset
    rows = dict[str, Any]()
    with job.store.for_one_build() if write else nullcontext():
        for name in job.recipe.all:
            row, state = _planned(job, name, write)
            estimate = None if row["planned"] is None else _estimate(job, name, row, state, like)
            meanings = _meanings(job, name, row["excluded"])
            row |= {"reads": job.recipe.reads(name), "estimate": estimate, "meanings": meanings}
            rows[job.recipe.home(name)] = row
    return _split(rows)


def _planned(job: Job, name: str, write: bool) -> tuple[dict[str, Any], StageState | None]:
    store, home, state = job.store, job.recipe.home(name), None
    for earlier in job.recipe.reads(name):
        try:
            job.earlier(earlier)
        except WrongUse:
            return {**_UNKNOWN, "kept": 0, "examples": [], "warnings": [], "state": f"waits for {earlier}"}, None
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


def _estimate(
    job: Job, name: str, counts: Mapping[str, Any], own: StageState | None, like: Store | None
) -> dict[str, Any] | None:
    """What all of a stage takes, by the median of some finished shards; None where nothing tells it.

    own: its state below OUT. like: another dataset, whose stage of this name and kind is looked at where ``own`` has no
    shards. ``seconds`` are of cores, or of a GPU (``gpu``); ``cost`` is None without prices.
    """
    store, state, source, planned = job.store, own, job.recipe[name].source, counts["planned"]
    if like is not None and (own is None or not own.done):
        homes = [home for home in stages_in(like) if home.rsplit("/", 1)[-1] == name]
        store, state = like, state_of(like, homes[0]) if homes else None
    if state is None or not state.done or state.stage.facts["generator"]["kind"] != source.kind:
        return None
    numbers = [*state.done][:: len(state.done) // LOGS + 1]
    logs = {number: log for number, log in read_logs(store, state.home, numbers).items() if "seconds" in log}
    if not logs:
        return None
    finished = dict(state.done.columns("planned"))
    candidates, logged = sum(finished.values()), sum(finished[number] for number in logs)
    written = sum(state.done.column("tar_size")) + sum(state.done.column("rows_size"))
    tally = Tally(*(round(count * planned / logged) for count in total(map(tally_in, logs.values()))))
    engine = metered_engine(source)
    return {
        "candidates": planned,
        "shards": counts["shards"],
        "samples": round(state.kept * planned / candidates),
        "bytes": round(written * planned / candidates),
        "seconds": planned * median(log["seconds"] / finished[number] for number, log in logs.items()),
        "gpu": any(log.get("gpu") is True for log in logs.values()),
        **tally._asdict(),
        "cost": None if engine is None else engine.cost(tally),
        "from": f"{candidates:,} candidates in {store.root}",
    }


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

    def look(home: str) -> dict[str, Any]:
        job, name = job_of(store, home)
        source = job.worker(name).source
        state = state_of(store, home, source.media_files())
        engine = metered_engine(source)
        tally = spent(store, home) if engine is not None else None
        problem = missing_problem(job.recipe, name, state)
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
            "problems": [Problem("media-missing", home, problem, "")] if problem else _without_card(store, state),
        }

    return _looked_at(store, (), look)


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
    rows = dict[str, Any]()
    for home in chosen(store, only):
        try:
            rows[home] = look(home)
        except TwinsetError as error:
            problem = Problem("stage-unreadable", home, str(error), "")
            rows[home] = {**_UNKNOWN, **_UNREAD, "problems": [problem]}
    return _split(rows)


def _without_card(store: Store, state: StageState) -> list[Problem]:
    path, is_subset = f"{state.home}/README.md", "/" not in state.home
    if not is_subset or state.todo or store.size(path) is not None:
        return []
    return [Problem("card-absent", path, "absent, though all shards are done", again())]


def _waiting(job: Job, name: str, state: StageState) -> dict[str, int]:
    """How many decisions of people a stage waits for, of how many; empty where it does not wait."""
    waiting = job.worker(name).generator.waiting() if state.todo else None
    return {} if waiting is None else dict(zip(("missing", "needed"), waiting, strict=True))


def _split(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows by home as ``{"stages": {NAME: …}, "subsets": {NAME: …}}``."""
    split: dict[str, Any] = {"stages": {}, "subsets": {}}
    for home, row in rows.items():
        split["stages" if "/" in home else "subsets"][home.rsplit("/", 1)[-1]] = row
    return split


def chosen(store: Store, only: Iterable[str]) -> list[str]:
    """Homes of the stages below OUT, or of those named; raises `WrongUse` when there are none, or a name is unknown."""
    homes, wanted = [*stages_in(store), *unplanned_in(store)], list(only)
    if not homes:
        raise WrongUse(f"{store.root} holds no dataset; make one with twinset build RECIPE --out {store.root}")
    names = [home.rsplit("/", 1)[-1] for home in homes]
    for name in wanted:
        if name not in names:
            raise WrongUse(f"{store.root} has no subset {name!r}; {suggested(name, names)}")
    return [home for home, name in zip(homes, names, strict=True) if name in wanted or not wanted]


def published(store: Store, only: Iterable[str], stages: bool = False) -> list[str]:
    """The subsets to load, show or export, all when none is named. stages: whether others can be named too.

    Raises `WrongUse` when there are none, or one has no plan, or a named one is not published.
    """
    only, unplanned = list(only), unplanned_in(store)
    subsets = [home for home in chosen(store, only) if "/" not in home or (only and stages)]
    for name in {*only} - {home.rsplit("/", 1)[-1] for home in subsets}:
        raise WrongUse(
            f"{store.root}: {name} is a stage that is not published: only subsets are loaded and exported; name one, "
            f"look at its samples with twinset look {store.root} --only {name}, or read its _meta/index.parquet"
        )
    if lost := [unplanned[home] for home in subsets if home in unplanned]:
        raise WrongUse("\n".join(lost))
    return subsets
