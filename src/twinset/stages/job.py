"""A recipe being built below OUT: what makes the shards of each stage, opened once in a process, and which are done.

Receipts say what is done; nothing else remembers it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, cast

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse
from twinset.contracts.parts import Filter
from twinset.contracts.receipt import Receipt
from twinset.contracts.recipe import Recipe, Subset, content_of
from twinset.contracts.recipe.allowed import refuse_other_answers
from twinset.contracts.source import Need
from twinset.contracts.stage import ANY_RUNTIME, SCHEMA_VERSION, Facts, Stage, runtime_facts, versions_of
from twinset.shards.contracts import Context, Source
from twinset.shards.finished_stage import FinishedStage, earlier_stage
from twinset.shards.ledger import Receipts, keep, read_receipts, row_of
from twinset.shards.media.media_folder import Media
from twinset.shards.plan import PlannedShard
from twinset.shards.read import read_settings
from twinset.shards.records import planned_stage, read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Entry, Store

BASE_LIBRARIES = ("numpy", "pillow", "pyarrow")  # the last writes the rows
OTHER_VERSION = "built by another version of twinset"
MISSING_REASONS = ("missing-media", "broken-media", "unsafe-path")
WORTH_KEEPING = 16  # receipts read one by one, after which the ledger is written again


@dataclass(frozen=True)
class StageWorker:
    """All that is needed to make the shards of one stage of a recipe.

    source, filters: opened; filters in the recipe's order. requested_runtime: the runtime class before the micro-batch
    was halved because memory ran out; empty when it was not.
    """

    recipe: Recipe
    name: str
    source: Source
    filters: Sequence[Filter]
    requested_runtime: str = ""

    @property
    def home(self) -> str:
        """Where it lies below OUT."""
        return self.recipe.home(self.name)

    @property
    def subset(self) -> Subset:
        """The settings of the stage."""
        return self.recipe[self.name]

    @property
    def parts(self) -> Sequence[Source | Filter]:
        """The source and the filters."""
        return (self.source, *self.filters)

    @property
    def isolated(self) -> bool:
        """Whether shards must be made in processes of their own."""
        return any(part.isolation == "process" for part in self.parts)

    @cached_property
    def machine(self) -> dict[str, Any]:
        """What the runtime class is the digest of: of the first part with a network; empty where there is none."""
        for part in self.parts:
            if (device := part.runs_on()) is not None:
                size = part.batch_size()
                batch = {"threads": getattr(part, "threads", 1), "micro_batch": size} if size else {}
                return runtime_facts(device, **batch)
        return {}

    @property
    def runtime(self) -> str:
        """The runtime class (`contracts.stage.runtime_class`) of this machine as it works here."""
        return digest(self.machine) if self.machine else ANY_RUNTIME

    def halved(self, problem: str) -> StageWorker:
        """With half the micro-batches, since memory ran out; raises `BuildFailed` where each is one sample already."""
        source, *filters = parts = [
            part.with_micro_batch(size // 2) if (size := part.batch_size()) > 1 else part for part in self.parts
        ]
        if parts == [*self.parts]:
            raise BuildFailed(
                f"memory runs out with one sample at a time ({problem}); make fewer shards at a time (--workers 1), "
                "set a smaller resolution, or use a machine with more memory"
            )
        requested, judges = self.requested_runtime or self.runtime, cast(Sequence[Filter], filters)
        return replace(self, source=cast(Source, source), filters=judges, requested_runtime=requested)

    def facts(self, inputs: str) -> dict[str, Any]:
        """All that decides the bytes of the stage's shards. inputs: `shards.contracts.Source.inputs`."""
        # The libraries of a filter's network belong to the runtime class: GPU workers have other builds.
        libraries = {name for judge in self.filters if judge.runs_on() is None for name in judge.libraries}
        libraries |= {*BASE_LIBRARIES, *self.source.libraries}
        return Facts(
            makes=self.source.makes,
            settings=content_of(self.subset, self.recipe.seed),
            inputs=inputs,
            generator=_described(self.source),
            filters=[_described(judge) for judge in self.filters],
            libraries=versions_of(libraries),
        ).model_dump()

    def refuse_other_versions(self, stage: Stage) -> None:
        """Raise `BuildFailed` when this machine would make other bytes than planned."""
        # The plan holds all that annotations say, and workers need none; scenes are made from assets again.
        planned = stage.facts
        here = self.facts(self.source.inputs() if self.source.synthetic else planned["inputs"])
        if digest(here) == stage.content:
            return
        differing = [key for key in planned if key != "libraries" and planned[key] != here.get(key)]
        differing += [
            f"{name} ({version} in the plan, {here['libraries'].get(name, 'absent')} here)"
            for name, version in planned["libraries"].items()
            if here["libraries"].get(name) != version
        ]
        raise BuildFailed(
            f"{stage.name}: this worker would make other bytes than planned, it differs in {', '.join(differing)}; "
            "bring its checkout, its environment (make env) and its inputs (weights of a model, manifest of assets) to "
            "those that planned, or build again to plan with these"
        )


def refuse_mixed_runtimes(where: str, runtimes: set[str]) -> None:
    """Raise `BuildFailed` for shards of several runtime classes, each before memory halved its micro-batch."""
    if len(runtimes) > 1:
        raise BuildFailed(
            f"{where}: made on different types of machine, or with another device, threads or micro_batch (runtime "
            f"classes {', '.join(sorted(runtimes))}): neural networks round differently on each. Resume on the first "
            "type, name another --out, or accept it with --set allow_mixed_runtimes=true"
        )


def _described(part: Source | Filter) -> dict[str, Any]:
    """Kind and version of a part, its weights, and the packages, with their versions, that brought it."""
    inner = {path.rstrip("."): within.package for path, within in part.parts() if path and within.package}
    brought = {"distribution": part.package, "parts": inner}  # none for twinset's
    described = {"kind": part.kind, "version": part.version, "weights": dict(part.weights())}
    return described | {name: value for name, value in brought.items() if value}


class Job:
    """A recipe and the store that it is built in. settled: the last known state of stages that are planned as it is."""

    def __init__(self, recipe: Recipe, store: Store) -> None:
        self.recipe, self.store = recipe, store
        self.settled: dict[str, StageState] = {}
        self._workers: dict[str, StageWorker] = {}
        self._lock = threading.Lock()  # stages run side by side

    def worker(self, name: str) -> StageWorker:
        """Source and filters of a stage, opened once.

        Raises `WrongUse` where one would write outside of OUT, twinset's cache and what is allowed.
        """
        with self._lock:
            if name not in self._workers:
                for key, part in self._parts([name]):
                    for setting, mark, place in part.places():
                        if mark.what == "cache":
                            refuse_other_answers(f"{key}.{setting}", place, self.store.root)
                stage = self.recipe[name]
                known_as, seed = stage.known_as or name, self.recipe.seed
                context = Context(known_as, stage.split, seed, self.earlier, self.store, stage.encoding)
                filters = [chosen.open() for chosen in stage.filters]
                source = cast(Source, stage.source).open(context)
                self._workers[name] = StageWorker(self.recipe, name, source, filters)
            return self._workers[name]

    def state(self, name: str, shards: range | None = None) -> StageState:
        """The shards of a stage by state. shards: to look at; all when None."""
        return state_of(self.store, self.recipe.home(name), self.worker(name).source.media_files(), shards)

    def earlier(self, stage: str) -> FinishedStage:
        """As `shards.finished_stage.earlier_stage`."""
        return earlier_stage(self.store, self.recipe, stage)

    def check_inputs(self, needs: Collection[Need], names: Collection[str] = ()) -> None:
        """Fail before any work when an input of the recipe, or of the stages that are named, is absent."""
        for key, part in self._parts(names):
            part.check_inputs(key, needs)

    def check_devices(self, names: Collection[str] = ()) -> None:
        """Fail before any work when a stage needs a GPU and this machine has none; workers of pools check theirs."""
        for key, part in self._parts(names):
            part.check_device(key)

    def not_found(self) -> list[str]:
        """The models and devices of the recipe that are not on this machine, each with what to do about it."""
        problems = list[str]()
        for key, part in self._parts():
            for check in (partial(part.check_inputs, key, ["models"]), partial(part.check_device, key)):
                try:
                    check()
                except (WrongUse, ImportError, OSError) as error:
                    problems.append(str(error))
        return problems

    def _parts(self, names: Collection[str] = ()) -> Iterator[tuple[str, Source | Filter]]:
        """The source and the filters of some stages, of all when none is named, by key in the recipe."""
        for name in names or self.recipe.all:
            for key, part in self.recipe[name].settings().items():
                yield f"{self.recipe.key(name)}.{key}", cast("Source | Filter", part)


def job_of(store: Store, home: str) -> tuple[Job, str]:
    """The job that a stage below OUT belongs to, and the stage's name in it."""
    recipe, _ = read_settings(store, home)
    return Job(recipe, store), home.rsplit("/", 1)[-1]


_opening = threading.Lock()  # two threads would open a worker twice


def worker_of(store: Store, home: str, stage: Stage) -> StageWorker:
    """The worker of a planned stage, opened once a process from OUT alone; raises as its `refuse_other_versions`."""
    with _opening:
        return _worker_of(store.root, home, store.read(layout.recipe(home)), stage.content)


def forget_workers() -> None:
    """Have this process open its workers again: what they remember of folders of media may no longer hold."""
    with _opening:
        _worker_of.cache_clear()


@lru_cache(maxsize=8)
def _worker_of(root: str, home: str, _recipe: bytes, _content: str) -> StageWorker:
    store = Store(root)
    job, name = job_of(store, home)
    job.check_inputs(("media", "models"), [name])
    job.worker(name).refuse_other_versions(planned_stage(store, home))
    return job.worker(name)


@dataclass(slots=True)
class StageState:
    """A stage's shards by state.

    home: where it lies below OUT. done: receipts that hold. missing: shards without one; stale: shard -> why its
    receipt no longer holds. rows, tars: listings of the shards' files, tars by ``SPLIT/NNNNN.tar``.
    """

    home: str
    stage: Stage
    planned: list[PlannedShard]
    done: Receipts
    missing: list[int]
    stale: dict[int, str]
    rows: Mapping[str, Entry]
    tars: Mapping[str, Entry]

    @property
    def todo(self) -> list[int]:
        """Shards to make, in order."""
        return sorted([*self.missing, *self.stale])

    @property
    def makes(self) -> str:
        """Name of the kind of its samples, or ``table``."""
        return str(self.stage.facts["makes"])

    @property
    def is_one_table(self) -> bool:
        """Whether it has no shards, being computed at once (`shards.contracts.TableStage`)."""
        return self.makes == "table" and not self.planned

    @property
    def kept(self) -> int:
        """Candidates that were kept; all rows of a stage without shards."""
        return self.stage.planned if self.is_one_table else sum(self.done.column("kept"))

    def counts(self) -> dict[str, Any]:
        """planned, kept, rejected and left out by reason, shards: the numbers that ``--json`` prints."""
        return {
            "planned": self.stage.planned,
            "kept": self.kept,
            "rejected": self.rejected(),
            "shards": len(self.planned),
            "excluded": self.stage.excluded,
        }

    def rejected(self) -> dict[str, int]:
        """Rejected candidates by reason."""
        return dict(sorted(self.done.rejected().items()))

    def missing_files(self) -> dict[str, int | None]:
        """Media that receipts name as missing, and the size of each that is there but broken."""
        listed = dict.fromkeys(self.done.column("missing"))
        return {name: size for missing in listed if missing != "{}" for name, size in json.loads(missing).items()}

    def missing_media(self) -> int:
        """How many candidates were rejected because their media is missing, broken or outside of its folder."""
        rejected = self.rejected()
        return sum(rejected.get(reason, 0) for reason in MISSING_REASONS)


def state_of(
    store: Store, home: str, media: Media | None = None, wanted: Collection[int] | None = None, trusting: bool = True
) -> StageState:
    """State of a planned stage, by listings rather than a look at each file; raises `WrongUse` without a plan.

    media: where inputs are looked for, to notice rejections that went stale; None leaves that out. wanted: numbers of
    the shards to look at; all when None. trusting: False to read every receipt again (`shards.ledger.read_receipts`).
    """
    stage = planned_stage(store, home)
    planned = read_planned(store, home)
    receipts, unreadable = read_receipts(store, home, wanted, trusting)
    rows, tars = store.listing(layout.meta(home, "rows")), dict[str, Entry]()
    for split in {shard.split for shard in planned}:
        tars |= {f"{split}/{name}": entry for name, entry in store.listing(f"{home}/{split}").items()}
    # One beyond the plan is a leftover, which the end of the build removes.
    stale = {number: "its receipt cannot be read" for number in unreadable if number < len(planned)}
    missing, done = list[int](), list[int]()
    by_number = {row["shard"]: row for row in receipts.table.select(_JUDGED).to_pylist()}
    sizes = _sizes(media, receipts.column("missing"))
    for number in range(len(planned)) if wanted is None else wanted:
        shard, receipt = planned[number], by_number.get(number)
        files = rows.get(f"{number:05d}.parquet"), tars.get(layout.tar_name(shard.split, number))
        if receipt is None and number not in stale:
            missing.append(number)
        elif receipt is not None and (why := _why_stale(stage, shard, receipt, *files, sizes)):
            stale[number] = why
        elif receipt is not None:
            done.append(number)
    if sum(stamp == "" for stamp in receipts.column("rows_stamp")) > WORTH_KEEPING and wanted is None and trusting:
        keep(store, home, receipts)
    return StageState(home, stage, planned, receipts.only(done), missing, stale, rows, tars)


def receipt_holds(
    store: Store, home: str, stage: Stage, planned: PlannedShard, receipt: Receipt, media: Media | None
) -> bool:
    """Whether the receipt of one shard vouches for it, with a look at its own files alone."""
    row, number = row_of(receipt), planned.shard
    places = layout.rows(home, number), layout.tar(home, receipt.split, number)
    rows, tar = (None if (size := store.size(path)) is None else Entry(size, "") for path in places)
    return receipt.shard == number and not _why_stale(stage, planned, row, rows, tar, _sizes(media, [row["missing"]]))


#: What of a receipt decides whether it holds.
_JUDGED = ["shard", "split", "content", "slice", "tar_size", "rows_size", "missing"]


def _sizes(media: Media | None, missing: Iterable[str]) -> dict[str, int | None]:
    """Sizes now of the media that receipts, by their JSON in the ledger, say were missing; none without a look."""
    if media is None:
        return {}
    return {name: media_size(media, name) for listed in set(missing) for name in json.loads(listed)}


def media_size(media: Media, name: str) -> int | None:
    """Size of a file of media; -1, which none has, for a name that leads out of the folder: no source gives it."""
    try:
        return media.size(name)
    except TwinsetError:
        return -1


def _why_stale(
    stage: Stage,
    planned: PlannedShard,
    receipt: Mapping[str, Any],
    rows: Entry | None,
    tar: Entry | None,
    media: Mapping[str, int | None],
) -> str:
    """Why a receipt, a row of the ledger, does not vouch for a planned shard, or empty.

    rows, tar: its files. media: sizes now of inputs that were missing.
    """
    if stage.facts.get("schema_version") != SCHEMA_VERSION:
        return OTHER_VERSION
    if receipt["split"] != planned.split:
        return "its receipt is of another shard"
    if receipt["content"] != stage.content or receipt["slice"] != planned.slice:
        return "the recipe, its inputs or a version changed"
    if receipt["tar_size"] and (tar is None or tar.size != receipt["tar_size"]):
        return "its tar is missing or has another size"
    if rows is None or rows.size != receipt["rows_size"]:
        return "its rows are missing or have another size"
    for name, size in json.loads(receipt["missing"]).items() if media else ():
        if media[name] != size:
            return f"{name} was {'absent' if size is None else 'unreadable'} and has changed"
    return ""
