"""Stages at a glance, for people and for ``--json``: planned, done, stale, and what is wrong."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Any

from twinset.cards.lineage import meanings_of
from twinset.cards.terms import TermCounts, lacking
from twinset.contracts.doors import is_installed
from twinset.contracts.errors import NoDataset, TwinsetError, WrongUse, missing_words, suggested
from twinset.shards.metering import spent
from twinset.shards.records import planned_stage, stages_in, subsets_in, unplanned_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.costs import estimated, keep_estimate, last_asked, read_cost
from twinset.stages.job import Job, job_of
from twinset.stages.plan import DESCRIBED, count_plan, planned_terms, prepare
from twinset.stages.status import StageState, missing_problem, state_of
from twinset.stages.verify import verify_stage

#: Counts of a stage that cannot be read here: nobody knows them.
_COUNTS: dict[str, Any] = {"planned": None, "kept": None, "rejected": {}, "shards": None, "excluded": {}}
_UNKNOWN = {**_COUNTS, "done": None}
_NO_STATUS: dict[str, Any] = {
    "missing": None,
    "missing_media": None,
    "missing_files": None,
    "cost": {},
    "examples": [],
    "meanings": {},
    "waiting": {},
    "stale": {},
}


def plan_states(job: Job, write: bool, like: Store | None = None) -> dict[str, Any]:
    """Counts, state and estimate of every stage of a recipe, in the order of the DAG.

    Args:
        write: whether plans are written below OUT; a stage that reads one which is not finished waits in any case.
        like: another dataset that estimates are made from.
    """
    if like is not None:
        chosen(like, ())  # refuses what is no dataset
    found: dict[str, Any] = {"stages": {}, "subsets": {}}
    estimates = dict[str, dict[str, Any] | None]()
    with job.store.for_one_build() if write else nullcontext():
        for name in job.recipe.all:
            part = "stages" if name in job.recipe.stages else "subsets"
            row, state = _planned(job, name, write)
            estimates[name] = estimated(job, name, row["planned"], row["shards"], state, like, estimates)
            if state is not None:
                keep_estimate(job, state, estimates[name])
            told = {"reads": job.recipe.reads(name), "estimate": estimates[name]}
            found[part][name] = {**row, **told, "meanings": _meanings(job, name, row["excluded"])}
    return found


def _planned(job: Job, name: str, write: bool) -> tuple[dict[str, Any], StageState | None]:
    for earlier in job.recipe.reads(name):
        try:
            job.earlier(earlier)
        except WrongUse:
            counts: dict[str, Any] = {"planned": None, "kept": 0, "rejected": {}, "shards": None}
            counts |= {"kinds": {}, "excluded": {}, "examples": [], "warnings": []}
            return {**counts, "state": f"waits for {earlier}"}, None
    if not write:
        counted, terms = count_plan(job.worker(name), job.store)
        return {**counted, "warnings": _warnings(job, name, terms), "state": "counted"}, None
    stage = prepare(job, name)
    state = state_of(job.store, job.recipe.home(name), job.worker(name).source.media_files())
    waiting = _waiting(job, name, state)
    words = missing_words(**waiting) if waiting else _in_words(state)
    terms = planned_terms(job.store, job.recipe.home(name), state.planned)
    found = {"kinds": stage.kinds, "examples": stage.examples, "warnings": _warnings(job, name, terms)}
    return {**state.counts(), **found, "state": words}, state


def _meanings(job: Job, name: str, reasons: Iterable[str]) -> dict[str, str]:
    """What these reasons mean, where the stage explains them."""
    known = meanings_of(job.recipe, name)
    return {reason: known[reason] for reason in reasons if reason in known}


def _warnings(job: Job, name: str, terms: TermCounts) -> list[str]:
    """A line where a subset lacks terms without which it cannot be published."""
    found = lacking(name, terms) if name in job.recipe.subsets else []
    return [f"{'; '.join(found)}: twinset publish refuses it so"] if found else []


def stage_status(job: Job, name: str) -> dict[str, Any]:
    """Counts of a built stage, its shards by state, and what to do where something is wrong."""
    home, worker = job.recipe.home(name), job.worker(name)
    state = state_of(job.store, home, worker.source.media_files())
    tally = spent(job.store, home) if worker.source.metered else None
    cost = read_cost(job.store, home)
    took = {} if tally is None else {"spent": {**tally._asdict(), "cost": worker.source.cost(tally)}}
    return {
        **state.counts(),
        **took,
        "cost": {what: cost.get(what) for what in ("estimated", "measured")},
        "examples": state.stage.examples,
        "meanings": _meanings(job, name, state.stage.excluded),
        "done": len(state.done),
        "missing": len(state.missing),
        "waiting": _waiting(job, name, state),
        "stale": {f"{number:05d}": why for number, why in sorted(state.stale.items())},
        "missing_media": state.missing_media(),
        "missing_files": len(state.missing_files()),
        "problems": _problems(job, name, state),
    }


def _waiting(job: Job, name: str, state: StageState) -> dict[str, int]:
    """How many decisions of people a stage waits for, of how many; empty where it does not wait."""
    waiting = job.worker(name).generator.waiting() if state.todo else None
    return {} if waiting is None else {"missing": waiting.missing, "needed": waiting.needed}


def stage_verdict(job: Job, name: str, media: bool) -> dict[str, Any]:
    """Counts of a stage and everything that is wrong with it, after all was hashed again."""
    home, worker = job.recipe.home(name), job.worker(name)
    files = worker.source.media_files()
    state = state_of(job.store, home, files, trusting=False)
    problems = list(verify_stage(job.store, state, files if media else None))
    return {**state.counts(), "problems": problems + _problems(job, name, state)}


def verdict_on_bytes(store: Store, home: str, error: TwinsetError) -> dict[str, Any]:
    """As `stage_verdict`, of a stage whose recipe cannot be opened here: files, counts and digests alone.

    Where packages that made the dataset are not installed, ``unchecked`` says which, and that is not a problem.
    """
    state = state_of(store, home, trusting=False)
    found = {**state.counts(), "problems": list(verify_stage(store, state))}
    if store.size(layout.recipe(home)) is None and store.size(layout.meta(home, DESCRIBED)) is None:
        return {
            **found,
            "unchecked": f"{home}: made elsewhere, and published without its logs: files, counts and digests were "
            "checked, the media were not",
        }
    if not (absent := _absent_packages(store)):
        return {**found, "problems": [str(error), *found["problems"]]}
    return {
        **found,
        "unchecked": f"{home}: made with {', '.join(absent)}, not installed here: files, counts and digests were "
        "checked, the media were not; install it to check these too",
    }


def _absent_packages(store: Store) -> list[str]:
    """Packages, with their versions, that brought parts of the stages below OUT, and of which none is installed."""
    brought = dict[str, None]()
    for home in stages_in(store):
        facts = planned_stage(store, home).facts
        for part in (facts["generator"], *facts["filters"]):
            brought |= dict.fromkeys([part.get("distribution", ""), *part.get("parts", {}).values()])
    return [one for one in brought if one and not is_installed(one.rpartition(" ")[0])]


def _problems(job: Job, name: str, state: StageState) -> list[str]:
    """What is wrong with a stage as a whole, without a look into its files."""
    problem = missing_problem(job.recipe, name, state)
    problems = [problem] if problem else []
    card = f"{state.home}/README.md"
    if not problem and name in job.recipe.subsets and not state.todo and job.store.size(card) is None:
        problems.append(f"{job.store.root}/{card}: absent, though all shards are done; run the same build again")
    return problems


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
    return [one for one in planned if one in homes], {one: why for one, why in lost.items() if one in homes}


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
    (planned, lost), all_subsets = chosen(store, only), subsets_in(store)
    subsets = [home for home in planned if home in all_subsets or (only and stages)]
    if only and (others := [home for home in planned if home not in subsets]):
        name = others[0].rsplit("/", 1)[-1]
        raise WrongUse(
            f"{store.root}/{others[0]} is a stage that is not published: only subsets are loaded and exported; name "
            f"one, look at its samples with twinset look {store.root} --only {name}, or read its _meta/index.parquet"
        )
    if lost and (only or not subsets):
        raise WrongUse("\n".join(lost.values()))
    return subsets


def of_all(
    store: Store,
    only: Iterable[str],
    look: Callable[[Job, str], dict[str, Any]],
    otherwise: Callable[[Store, str, TwinsetError], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """What a function says of the stages below OUT, or of those named, as ``{"subsets": {NAME: …}, "stages": …}``.

    Of `stage_status` also of the stages of the last build that are not planned yet, whose ``state`` says what they
    wait for.

    otherwise: says it of a stage that ``look`` cannot open, given its home and the error.
    """
    planned, lost = chosen(store, only)
    unknown = {**_UNKNOWN, **(_NO_STATUS if look is stage_status else {})}
    results = {home: {**unknown, "problems": [why]} for home, why in lost.items()}
    for home in planned:
        try:
            results[home] = look(*job_of(store, home))
        except TwinsetError as error:
            results[home] = {**unknown, "problems": [str(error)]}
            if otherwise is not None:
                with suppress(TwinsetError):
                    results[home] = otherwise(store, home, error)
    if look is stage_status:
        done = {
            home.rsplit("/", 1)[-1]
            for home, row in results.items()
            if row["done"] is not None and row["done"] == row["shards"]
        }
        for home, reads in last_asked(store, planned).items():
            waits = [f"waits for {', '.join(one for one in reads if one not in done)}"] if {*reads} - done else []
            row = {**unknown, "problems": [], "state": ", ".join(["not planned yet", *waits])}
            results.setdefault(home, row)
    split: dict[str, Any] = {"subsets": {}, "stages": {}}
    for home, counts in results.items():
        split["stages" if "/" in home else "subsets"][home.rsplit("/", 1)[-1]] = counts
    return split


def _in_words(state: StageState) -> str:
    done, total = len(state.done), len(state.planned)
    words = "done" if done == total else f"{done:,} of {total:,} shards" if done else "planned"
    return f"{words}, {len(state.stale):,} stale" if state.stale else words
