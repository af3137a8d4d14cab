"""Which shards of a stage are done. The receipts say so; nothing else is remembered."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinset.contracts.errors import TwinsetError
from twinset.contracts.plan import PlannedShard
from twinset.contracts.receipt import Receipt
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import SCHEMA_VERSION, Stage
from twinset.shards.ledger import Receipts, keep, read_receipts, row_of
from twinset.shards.media.media_folder import Media
from twinset.shards.records import planned_stage, read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Entry, Store

OTHER_VERSION = "built by another version of twinset"
MISSING_REASONS = ("missing-media", "broken-media")
WORTH_KEEPING = 16  # receipts read one by one, after which the ledger is written again


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
    """State of a planned stage, by listings rather than a look at each file.

    Args:
        media: where inputs are looked for, to notice rejections that went stale; None leaves that out.
        wanted: numbers of the shards to look at; all when None.
        trusting: False to read every receipt again (`shards.ledger.read_receipts`).

    Raises:
        WrongUse: nothing was planned there.
    """
    stage = planned_stage(store, home)
    planned = read_planned(store, home)
    looked_at = planned if wanted is None else [planned[number] for number in wanted]
    receipts, unreadable = read_receipts(store, home, wanted, trusting)
    rows, tars = store.listing(layout.meta(home, "rows")), _tars(store, home, planned)
    # One beyond the plan is a leftover, which the end of the build removes.
    stale = {number: "its receipt cannot be read" for number in unreadable if number < len(planned)}
    missing: list[int] = []
    done: list[int] = []
    by_number = {row["shard"]: row for row in receipts.table.select(_JUDGED).to_pylist()}
    found = _sizes(media, receipts.column("missing"))
    for shard in looked_at:
        number = shard.shard
        if number not in by_number:
            if number not in stale:
                missing.append(number)
        elif why := _why_stale(stage, shard, by_number[number], rows, tars, found):
            stale[number] = why
        else:
            done.append(number)
    if sum(stamp == "" for stamp in receipts.column("rows_stamp")) > WORTH_KEEPING and wanted is None and trusting:
        keep(store, home, receipts)
    return StageState(home, stage, planned, receipts.only(done), missing, stale, rows, tars)


def receipt_holds(
    store: Store, home: str, stage: Stage, planned: PlannedShard, receipt: Receipt, media: Media | None
) -> bool:
    """Whether the receipt of one shard vouches for it, with a look at its own files alone."""
    row, number = row_of(receipt), planned.shard
    rows = _sized(store, f"{number:05d}.parquet", layout.rows(home, number))
    tars = _sized(store, layout.tar_name(receipt.split, number), layout.tar(home, receipt.split, number))
    found = _sizes(media, [row["missing"]])
    return receipt.shard == number and not _why_stale(stage, planned, row, rows, tars, found)


def _sized(store: Store, name: str, path: str) -> dict[str, Entry]:
    size = store.size(path)
    return {} if size is None else {name: Entry(size, "")}


#: What of a receipt decides whether it holds.
_JUDGED = ["shard", "split", "content", "slice", "tar_size", "rows_size", "missing"]


def _sizes(media: Media | None, missing: Iterable[str]) -> dict[str, int | None] | None:
    """Sizes now of the media that receipts say were missing, each by the JSON of its ledger; None without a look."""
    if media is None:
        return None
    return {name: _size(media, name) for listed in set(missing) for name in json.loads(listed)}


def _size(media: Media, name: str) -> int | None:
    """Size of a file of media; -1, which none has, for a name that no source gives: then the receipt is not ours."""
    try:
        return media.size(name)
    except TwinsetError:
        return -1


def _tars(store: Store, home: str, planned: Sequence[PlannedShard]) -> dict[str, Entry]:
    splits = sorted({shard.split for shard in planned})
    return {f"{split}/{name}": one for split in splits for name, one in store.listing(f"{home}/{split}").items()}


def _why_stale(
    stage: Stage,
    planned: PlannedShard,
    receipt: Mapping[str, Any],
    rows: Mapping[str, Entry],
    tars: Mapping[str, Entry],
    media: Mapping[str, int | None] | None,
) -> str:
    """Why a receipt, a row of the ledger, does not vouch for a planned shard, or empty.

    media: sizes of inputs that were missing.
    """
    if stage.facts.get("schema_version") != SCHEMA_VERSION:
        return OTHER_VERSION
    if receipt["split"] != planned.split:
        return "its receipt is of another shard"
    if receipt["content"] != stage.content or receipt["slice"] != planned.slice:
        return "the recipe, its inputs or a version changed"
    tar = tars.get(layout.tar_name(planned.split, planned.shard))
    if receipt["tar_size"] and (tar is None or tar.size != receipt["tar_size"]):
        return "its tar is missing or has another size"
    row = rows.get(f"{planned.shard:05d}.parquet")
    if row is None or row.size != receipt["rows_size"]:
        return "its rows are missing or have another size"
    if media is not None and receipt["missing"] != "{}":
        for name, size in json.loads(receipt["missing"]).items():
            if media[name] != size:
                return f"{name} was {'absent' if size is None else 'unreadable'} and has changed"
    return ""


def missing_problem(recipe: Recipe, name: str, state: StageState) -> str:
    """What to do when more inputs of a stage are missing, broken or out of reach than the recipe allows; else empty."""
    missing, unsafe = state.missing_media(), state.rejected().get("unsafe-path", 0)
    most, source = recipe.max_missing * state.stage.planned, recipe[name].source
    media = next((str(path) for _, place, path in source.places() if place.need == "media"), source.planned_from)
    if unsafe > most:
        return (
            f"{name}: {unsafe} of {state.stage.planned} candidates name media by paths that lead out of {media}; write "
            "them relative to it, and run the same command again"
        )
    if missing <= most:
        return ""
    files = sorted(state.missing_files())
    counted = f"{len(files):,} file{'s' * (len(files) != 1)}, such as {files[0]}" if files else "such as those"
    return (
        f"{name}: media of {missing} of {state.stage.planned} candidates is missing or broken: {counted} in {media}; "
        f"max_missing is {recipe.max_missing:.2%}. twinset status OUT --missing FILE lists them. Correct "
        f"{recipe.key(name)}.source or raise the recipe's max_missing (--set max_missing=0.2), and run the same "
        "command again: shards that lacked nothing stay"
    )
