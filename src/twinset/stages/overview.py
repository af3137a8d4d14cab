"""What lies below OUT, for people and for ``--json``: counts, states of shards, estimates, and all that is wrong."""

import csv
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from twinset.cards.lineage import meanings_of
from twinset.contracts.canonical import digest
from twinset.contracts.errors import TwinsetError, WrongUse, in_words, missing_words, suggested
from twinset.contracts.kinds.samples import MediaFile
from twinset.contracts.receipt import Receipt
from twinset.models.engines import metered_engine
from twinset.shards.ledger import LEDGER, damaged_receipts
from twinset.shards.media.media_folder import Media
from twinset.shards.metering import Tally, read_logs, spent, tally_in, total
from twinset.shards.plan import PlannedShard, plan_file, read_parquet
from twinset.shards.records import stages_in, unplanned_in
from twinset.shards.rows import KEPT, REJECTED
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, read_members
from twinset.stages.dataset import changed_descriptions, missing_problem
from twinset.stages.finish import damaged_index
from twinset.stages.job import Job, StageState, StageWorker, job_of, media_size, state_of
from twinset.stages.make import candidates_of
from twinset.stages.plan import contradiction, count_plan, prepare

logger = logging.getLogger("twinset")

_LOGS = 16  # of finished shards that an estimate reads, evenly spread: on an object store each is a request
_UNKNOWN: dict[str, Any] = {"planned": None, "kept": None, "rejected": {}, "shards": None, "excluded": {}}
#: Of a stage that cannot be read.
_UNREAD = {**_UNKNOWN, "examples": [], "meanings": {}, "waiting": {}, "stale": {}}
_UNREAD |= dict.fromkeys(("done", "missing", "missing_media"))
_READ_ERRORS = (OSError, ValueError, TypeError, LookupError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and what to do about it.

    code: what kind, such as ``tar-damaged``. path: of the file or folder, below OUT. message: what is wrong with it.
    remedy: what to do. shard: its number, where it is of one.
    """

    code: str
    path: str
    message: str
    remedy: str
    shard: int | None = None

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{self.path}: {self.message}", self.remedy)))


def again(*paths: str) -> str:
    """A remedy: have what some files vouch for made again. Without the removal a build trusts what it hashed once."""
    return f"remove {' and '.join(paths)} and run the same build again" if paths else "run the same build again"


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
    for earlier in job.recipe.reads(name):
        try:
            job.earlier(earlier)
        except WrongUse:
            return {**_UNKNOWN, "kept": 0, "examples": [], "state": f"waits for {earlier}"}, None
    if not write:
        return {**count_plan(job.worker(name), job.store), "state": "counted"}, None
    stage, state = prepare(job, name), job.state(name)
    waiting = _waiting(job, name, state)
    words = missing_words(**waiting) if waiting else _state_words(state)
    return {**state.counts(), "kinds": stage.kinds, "examples": stage.examples, "state": words}, state


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
    numbers = [*state.done][:: len(state.done) // _LOGS + 1]
    logs = {number: log for number, log in read_logs(store, state.home, numbers).items()}
    logs = {number: log for number, log in logs.items() if isinstance(log.get("seconds"), int | float)}
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


def _state_words(state: StageState) -> str:
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
    """Counts of stages and all that is wrong, hashed again; only media need the packages that made the dataset."""

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
        except Exception as error:  # of what its package does too
            rows[home] = {**_UNREAD, "problems": [Problem("stage-unreadable", home, in_words(error), "")]}
    return _split(rows)


def _without_card(store: Store, state: StageState) -> list[Problem]:
    path, is_subset = f"{state.home}/README.md", "/" not in state.home
    if not is_subset or state.todo or store.size(path) is not None:
        return []
    return [Problem("card-absent", path, "absent, though all shards are done", again())]


def _waiting(job: Job, name: str, state: StageState) -> dict[str, int]:
    """How many decisions of people a stage waits for, of how many; empty where it does not wait."""
    waiting = job.worker(name).source.waiting() if state.todo else None
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


def write_missing(store: Store, file: Path) -> None:
    """Write a TSV of the files that stages below OUT lack: for the shards that are done as their receipts say.

    A stage that cannot be read is logged, and left out.
    """
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream, "excel-tab", lineterminator="\n")
            rows.writerow(("stage", "media", "state", "url"))
            for home in stages_in(store):
                try:
                    lacking = list(_missing_of(store, home))
                except (TwinsetError, OSError, ValueError, pa.ArrowException) as error:
                    problem = "its media are not listed, since it cannot be read"
                    logger.warning("%s/%s: %s: %s", store.root, home, problem, error)
                else:
                    rows.writerows(lacking)
    except OSError as error:
        raise WrongUse(f"{file}: cannot be written ({error.strerror}); name another file") from error


def _missing_of(store: Store, home: str) -> Iterator[tuple[str, str, str, str]]:
    job, name = job_of(store, home)
    worker = job.worker(name)
    if (media := worker.source.media_files()) is None:
        return
    state = state_of(store, home, media)
    lacking = {file: "absent" if size is None else "broken" for file, size in state.missing_files().items()}
    for wanted in _wanted(store, state, worker, state.todo):
        if wanted not in lacking and media_size(media, wanted) is None:
            lacking[wanted] = "absent"
    urls = dict[str, str]()
    if lacking:
        with suppress(TwinsetError):  # annotations may lie on another machine
            urls |= worker.source.media_urls()
    for file, problem in lacking.items():
        yield name, file, problem, urls.get(file, "")


def _wanted(store: Store, state: StageState, worker: StageWorker, shards: Iterable[int]) -> Iterator[str]:
    """Names of the media that the candidates of some shards need."""
    for shard in shards:
        for candidate in candidates_of(store, worker, state.stage.plan, state.planned[shard]):
            yield from worker.source.media_names(candidate)


def verify_stage(store: Store, state: StageState, media: Media | None = None) -> Iterator[Problem]:
    """Problems of one stage; none when all is well. media: where the sources lie, to hash them too."""
    home, record, ledger = state.home, layout.meta(state.home, "stage.json"), layout.meta(state.home, LEDGER)
    if message := contradiction(state.stage, state.planned):
        yield Problem("plan-damaged", record, message, again(record))
    for number in state.missing:
        yield Problem("shard-missing", home, f"shard {number:05d} is not made yet", again(), number)
    damaged = damaged_receipts(store, home)
    for number in damaged:
        path, message = layout.receipt(home, number), f"not what {ledger} says was read from it; one is damaged"
        yield Problem("receipt-damaged", path, message, again(path, ledger), number)
    for number in sorted(state.stale.keys() - {*damaged}):
        yield Problem("shard-stale", home, f"shard {number:05d} is stale, {state.stale[number]}", again(), number)
    sources = defaultdict[MediaFile, list[str]](list)
    for receipt in state.done.receipts():
        if message := _plan_problem(store, home, state.planned[receipt.shard]):
            path = layout.plan(home, plan_file(receipt.shard)[0])
            yield Problem("plan-damaged", path, message, again(record), receipt.shard)
        rows, own = _of_shard(store, home, receipt), layout.receipt(home, receipt.shard)
        if isinstance(rows, Problem):
            yield rows
        elif media is not None and state.makes != "table":
            for source in {MediaFile(**source) for listed in rows["sources"].to_pylist() for source in listed or ()}:
                sources[source].append(own)
    # Of a stage that is not finished, or only made by hand, the index is not asked to be right.
    if not state.todo and store.size(layout.meta(home, "index.json")) is not None:
        if path := damaged_index(store, state):
            remedy = again(layout.meta(home, "index.json"), ledger)
            yield Problem("index-damaged", path, "absent, or not of the shards that the receipts vouch for", remedy)
        for path in changed_descriptions(store, home):
            yield Problem("description-changed", path, "absent, or not the one that the build wrote", again(record))
    for source in sorted(sources, key=lambda source: source.path):
        if media is not None and "://" not in source.path:  # what lies in a bucket is in no media folder
            yield from _of_source(media, source, sources[source])


def _plan_problem(store: Store, home: str, planned: PlannedShard) -> str:
    """What is wrong with the candidates of a shard; empty where nothing is."""
    name, row_group = plan_file(planned.shard)
    try:
        with store.open(layout.plan(home, name)) as stream:
            candidates = read_parquet(stream, row_group=row_group).to_pylist()
            same = digest(candidates) == planned.slice
    except _READ_ERRORS as error:
        return f"cannot be read ({error})"
    return "" if same else f"the candidates of shard {planned.shard:05d} are not those of the plan"


def _of_shard(store: Store, home: str, receipt: Receipt) -> Problem | pa.Table:
    """The rows of a shard that agrees with its receipt, or how it does not."""
    number, code, path = receipt.shard, "rows-damaged", layout.rows(home, receipt.shard)
    try:
        if not (message := _changed(store, path, receipt.rows_sha256)):
            with store.open(path) as stream:
                table = read_parquet(stream)
            keys = list(dict.fromkeys(table.filter(pc.equal(table["verdict"], KEPT))["key"].to_pylist()))
            counts = len(keys), len(table.filter(pc.equal(table["verdict"], REJECTED)))
            if counts != (receipt.kept, sum(receipt.rejected.values())):
                message = f"{counts[0]} kept and {counts[1]} rejected, {receipt.planned} planned"
            else:
                code, path = "tar-damaged", layout.tar(home, receipt.split, number)
                if not (message := _tar_problem(store, path, receipt, keys)):
                    return table
    except (BrokenTar, *_READ_ERRORS) as error:
        message = f"cannot be read ({error})"
    return Problem(code, path, message, again(layout.receipt(home, number)), number)


def _changed(store: Store, path: str, sha256: str) -> str:
    there = store.sha256(path)[0]
    return "" if there == sha256 else f"sha256 {there}, its receipt says {sha256}"


def _tar_problem(store: Store, path: str, receipt: Receipt, keys: list[str]) -> str:
    """What is wrong with a tar that should have the samples of some keys; empty where nothing is."""
    if not receipt.tar_size:
        return "" if store.size(path) is None else "its receipt says that nothing was kept"
    if message := _changed(store, path, receipt.tar_sha256):
        return message
    with store.open(path) as stream:
        there = dict.fromkeys(name.partition(".")[0] for name, _ in read_members(stream, path))
    return "" if list(there) == keys else "its samples are not those that the rows of the shard keep"


def _of_source(media: Media, source: MediaFile, receipts: list[str]) -> Iterator[Problem]:
    there, path = media.sha256(source.path), f"{media.root}/{source.path}"
    if there is None:
        remedy = f"put it back, or, to do without it, {again(*receipts)}"
        yield Problem("source-gone", path, "the source is gone", remedy)
    elif there != (source.sha256, source.size):
        message = f"not the file that the samples were made from (sha256 was {source.sha256})"
        yield Problem("source-changed", path, message, f"put that one back, or {again(*receipts)}")
