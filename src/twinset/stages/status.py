"""Which shards of a stage are done, as receipts say, which alone are remembered; and what is wrong with a dataset."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.errors import TwinsetError
from twinset.contracts.receipt import Receipt
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import SCHEMA_VERSION, Stage
from twinset.shards.ledger import Receipts, keep, read_receipts, row_of
from twinset.shards.media.media_folder import Media
from twinset.shards.plan import PlannedShard, plan_digest
from twinset.shards.records import planned_stage, read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Entry, Store

OTHER_VERSION = "built by another version of twinset"
MISSING_REASONS = ("missing-media", "broken-media")
WORTH_KEEPING = 16  # receipts read one by one, after which the ledger is written again


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
        return {name: size for one in listed if one != "{}" for name, size in json.loads(one).items()}

    def missing_media(self) -> int:
        """How many candidates were rejected because their media is missing or broken."""
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


def missing_problem(recipe: Recipe, name: str, state: StageState) -> str:
    """What to do when more inputs of a stage are missing, broken or out of reach than the recipe allows; else empty."""
    missing, unsafe = state.missing_media(), state.rejected().get("unsafe-path", 0)
    planned, source = state.stage.planned, recipe[name].source
    media = next((str(path) for _, place, path in source.places() if place.need == "media"), source.planned_from)
    if unsafe > recipe.max_missing * planned:
        return (
            f"{name}: {unsafe} of {planned} candidates name media by paths that lead out of {media}; write them "
            "relative to it, and run the same command again"
        )
    if missing <= recipe.max_missing * planned:
        return ""
    files = sorted(state.missing_files())
    named = f"{len(files):,} file{'s' * (len(files) != 1)}, such as {', '.join(files[:1])}"
    return (
        f"{name}: media of {missing} of {planned} candidates is missing or broken: {named} in {media}; max_missing is "
        f"{recipe.max_missing:.2%}. twinset status OUT --missing FILE lists them. Correct {recipe.key(name)}.source or "
        "raise the recipe's max_missing (--set max_missing=0.2), and run the same command again: shards that lacked "
        "nothing stay"
    )


def plan_problem(home: str, stage: Stage, planned: Sequence[PlannedShard]) -> Problem | None:
    """A record that its own facts or its list of shards contradict. Raises ValueError or TypeError for odd facts."""
    record = layout.meta(home, "stage.json")
    if digest(stage.facts) != stage.content:
        return Problem("plan-damaged", record, "its digest is not that of its facts", again(record))
    counts = sum(shard.planned for shard in planned), len(planned)
    is_one_table = stage.facts["makes"] == "table" and not planned
    if not is_one_table and (plan_digest(planned), *counts) != (stage.plan, stage.planned, stage.shards):
        path = layout.plan(home, "shards.parquet")
        return Problem("plan-damaged", path, "not the plan of stage.json", again(record))
    return None
