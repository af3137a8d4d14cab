"""The receipts of a stage in columns, so that 100,000 of them are read, counted and compared in seconds.

Receipts are small files of their own: that is what makes a shard done or not. Reading each of them at every look would
cost a request a shard on an object store, so what was read is kept in one Parquet file beside the logs, each receipt
with the stamp (`shards.storage.store.Entry`) of the file that it was read from, and with the stamps of rows and tar as
they were when they were last hashed and agreed. A stamp that differs from the listing means: read, or hash, again.
Nothing depends on this file; without it everything is read once more.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter

from twinset.contracts.candidate import SPLIT
from twinset.contracts.receipt import Receipt, parse_receipt
from twinset.shards.plan import read_parquet
from twinset.shards.storage import layout
from twinset.shards.storage.store import Entry, Store

PARALLEL_READS = 16  # receipts are small: on an object store their latency is what costs
BATCH = 4096  # receipts that memory holds as objects, a hundred times the size of their columns
LEDGER = "log/ledger.parquet"

#: Mappings, kept as JSON.
_NESTED: dict[str, TypeAdapter[Any]] = {
    "rejected": TypeAdapter(dict[str, int]),
    "missing": TypeAdapter(dict[str, int | None]),
    "duplicates": TypeAdapter(dict[str, str]),
}
#: A split becomes part of a path.
_SPLITS = TypeAdapter(list[Annotated[str, Field(pattern=SPLIT)]])
_FIELDS = {name: pa.int64() if field.annotation is int else pa.string() for name, field in Receipt.model_fields.items()}
_STAMPS = ("stamp", "rows_stamp", "tar_stamp")
SCHEMA = pa.schema([*_FIELDS.items(), *((name, pa.string()) for name in _STAMPS)])


class Receipts(Mapping[int, Receipt]):
    """Receipts by the number of their shard, held in columns.

    Whole receipts are built when asked for; `column` gives one field of all in the order of the numbers.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._places = {number: place for place, number in enumerate(table["shard"].to_pylist())}

    def __getitem__(self, number: int) -> Receipt:
        return _receipt(self.table.slice(self._places[number], 1).to_pylist()[0])

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def receipts(self) -> Iterator[Receipt]:
        """All receipts in order, some thousand at a time."""
        for batch in self.table.to_batches(max_chunksize=BATCH):
            yield from map(_receipt, batch.to_pylist())

    def column(self, name: str) -> list[Any]:
        """One field of all receipts; of mappings, their JSON."""
        values: list[Any] = self.table[name].to_pylist()
        return values

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The number of each shard with some fields of its receipt, as `column` gives them."""
        return zip(self, *map(self.column, names), strict=True)

    def rejected(self) -> Counter[str]:
        """Rejected candidates of all shards by reason."""
        counts = Counter[str]()
        for rejected, times in Counter(self.column("rejected")).items():
            counts.update({reason: times * count for reason, count in json.loads(rejected).items()})
        return counts

    def only(self, numbers: Iterable[int]) -> Receipts:
        """Those of some shards."""
        numbers = list(numbers)
        if len(numbers) == len(self):  # building an Arrow array imports pandas, which takes a second or two
            return self
        return Receipts(self.table.take(pa.array([self._places[number] for number in numbers], pa.int64())))

    def hashed(self, stamps: Mapping[tuple[str, int], str]) -> Receipts:
        """The same with new stamps, by column and shard, of rows and tars that were hashed and agree."""
        table = self.table
        for name in ("rows_stamp", "tar_stamp"):
            values = [stamps.get((name, number), before) for number, before in self.columns(name)]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.string()))
        return Receipts(table)


def read_receipts(
    store: Store, home: str, wanted: Iterable[int] | None = None, trusting: bool = True
) -> tuple[Receipts, list[int]]:
    """The receipts of a stage, from the ledger where a file has not changed since, and the numbers of unreadable ones.

    Args:
        wanted: the numbers of shards to look at; all that have a receipt when None.
        trusting: False to read every receipt again, as an audit does.
    """
    entries = _entries(store, home)
    numbers = sorted(entries if wanted is None else entries.keys() & set(wanted))
    known = Receipts(_known(store, home) if trusting else SCHEMA.empty_table())
    stamps = dict(known.columns("stamp"))
    before = known.only(number for number in numbers if stamps.get(number) == entries[number].stamp)
    fresh = [number for number in numbers if stamps.get(number) != entries[number].stamp]
    if not fresh:
        return before, []
    table, unreadable = _read(store, home, fresh, entries)
    return Receipts(pa.concat_tables([before.table, table]).sort_by("shard").combine_chunks()), unreadable


def damaged_receipts(store: Store, home: str) -> list[int]:
    """Shards whose receipt is not what the ledger read from it, though its stamp is the same: one of both is damaged.

    A build would not notice, since it trusts the ledger where a stamp is the same.
    """
    (trusted, broken), (audited, unreadable) = read_receipts(store, home), read_receipts(store, home, trusting=False)
    known = {receipt.shard: receipt for receipt in trusted.receipts()}
    differing = {receipt.shard for receipt in audited.receipts() if known.get(receipt.shard, receipt) != receipt}
    return sorted(differing | ({*unreadable} - {*broken}))


def keep(store: Store, home: str, receipts: Receipts) -> None:
    """Write the ledger; a folder that cannot be written does without."""
    with contextlib.suppress(OSError), store.spool() as spool:
        pq.write_table(receipts.table, spool / "ledger", compression="zstd", write_page_checksum=True)
        store.move_in(spool / "ledger", layout.meta(home, LEDGER))


def _entries(store: Store, home: str) -> dict[int, Entry]:
    """The files of all receipts of a stage, by shard."""
    listing = store.listing(layout.meta(home, "receipts"))
    return {n: entry for name, entry in listing.items() if (n := layout.shard_number(name, "json")) >= 0}


def _known(store: Store, home: str) -> pa.Table:
    """The ledger; empty where it does not hold what receipts hold: it may be damaged, or come from elsewhere."""
    try:
        with store.open(layout.meta(home, LEDGER)) as stream:
            table = read_parquet(stream, checksums=True)
        if not table.schema.equals(SCHEMA) or any(column.null_count for column in table.columns):
            raise ValueError("not the columns of receipts")
        if len(table["shard"].unique()) < len(table):
            raise ValueError("two receipts of a shard")
        for name, values in _NESTED.items():
            for text in table[name].unique().to_pylist():
                values.validate_json(text, strict=True)
        _SPLITS.validate_python(table["split"].unique().to_pylist())
    except (FileNotFoundError, NotADirectoryError, ValueError, pa.ArrowException):
        return SCHEMA.empty_table()
    return table


def _read(store: Store, home: str, numbers: list[int], entries: Mapping[int, Entry]) -> tuple[pa.Table, list[int]]:
    """The receipts of some shards from their own files, and the numbers of those that are none."""
    tables, unreadable = [SCHEMA.empty_table()], list[int]()

    def read(number: int) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):  # it was taken back meanwhile
            receipt = parse_receipt(store.read(layout.receipt(home, number)))
            if receipt is not None and receipt.shard == number:
                return row_of(receipt, entries[number].stamp)
            unreadable.append(number)
        return None

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for first in range(0, len(numbers), BATCH):
            rows = [row for row in pool.map(read, numbers[first : first + BATCH]) if row is not None]
            tables.append(pa.Table.from_pylist(rows, SCHEMA))
    return pa.concat_tables(tables).combine_chunks(), sorted(unreadable)


def row_of(receipt: Receipt, stamp: str = "") -> dict[str, Any]:
    """A receipt as a row of the ledger. stamp: of its file."""
    values = receipt.model_dump()
    nested = {name: json.dumps(values[name], sort_keys=True) for name in _NESTED}
    return {**values, **nested, "stamp": stamp, "rows_stamp": "", "tar_stamp": ""}


def _receipt(row: Mapping[str, Any]) -> Receipt:
    values = {name: row[name] for name in _FIELDS}
    # Checked when it was read from its own file; the ledger is twinset's own and bound to it by its stamp.
    return Receipt.model_construct(**{**values, **{name: json.loads(values[name]) for name in _NESTED}})
