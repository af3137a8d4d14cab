"""A finished stage as a later one reads it: what is no such stage, or damaged, is named with its remedy.

Absent inputs are named before any work, of sources and of filters alike.
Rows of samples and of tables: written column by column, read back, and the same bytes for the same rows.
"""

import io
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.finished_stage import write_index
from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import SampleKind
from twinset.contracts.kinds.samples import MediaFile, Rejected, TableRows
from twinset.contracts.parts import AnyFilter, Filter
from twinset.contracts.recipe import parse_recipe
from twinset.contracts.source import AnnotationFile, Place
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import index_batches, index_rows
from twinset.shards.rows import KEPT, REJECTED, Row, read_rows, schema_of, table_schema, write_rows, write_table_rows
from twinset.shards.storage.store import Store
from twinset.stages.job import Job


@pytest.fixture
def earlier(tmp_path: Path) -> FinishedStage:
    """A stage of three rows."""
    return write_index(pa.table({"key": ["a", "b", "c"], "caption_id": ["1", "1", "2"]}), tmp_path, "words", 2)


def test_a_finished_stage_is_read_in_columns(earlier: FinishedStage) -> None:
    assert earlier.read(["caption_id"]).to_pydict() == {"caption_id": ["1", "1", "2"]}
    assert [len(batch) for batch in earlier.batches(["key"])] == [3]


def test_chosen_rows_are_read_batch_by_batch(tmp_path: Path) -> None:
    table = pa.table({"key": [str(number) for number in range(10)], "caption_id": ["1"] * 10})
    earlier = write_index(table, tmp_path, "words", 10, row_group=3)
    chosen = np.isin(np.arange(10), [0, 7, 8, 9])
    batches = list(earlier.batches(["key"], chosen))
    assert [key for batch in batches for key in batch["key"].to_pylist()] == ["0", "7", "8", "9"]
    assert all(len(batch) for batch in batches) and list(earlier.batches(["key"], np.zeros(10, bool))) == []
    assert earlier.columns()[:2] == ["key", "caption_id"]


def test_a_stage_of_another_kind_is_refused(earlier: FinishedStage) -> None:
    for read in (earlier.read, lambda columns: next(earlier.batches(columns))):
        with pytest.raises(WrongUse, match=r"/words: its index has no column .image_id.; name a stage"):
            read(["key", "image_id"])


@pytest.mark.parametrize("part", [slice(None), slice(4, 40), slice(-8, -4)], ids=["all", "a page", "the footer's size"])
def test_a_damaged_index_says_what_to_remove(earlier: FinishedStage, tmp_path: Path, part: slice) -> None:
    path, store = tmp_path / "words/_meta/index.parquet", Store(str(tmp_path))
    damaged = bytearray(path.read_bytes())
    damaged[part] = bytes(len(damaged[part]))
    path.write_bytes(damaged)
    for read in (
        lambda: FinishedStage(store, "words").read(["key"]),
        lambda: list(index_rows(store, "words", ["key"])),
        lambda: list(index_batches(store, "words", ["key"])),
    ):
        with pytest.raises(
            WrongUse, match=r"index\.parquet: cannot be read .*; remove words/_meta/index\.json and run"
        ):
            read()


@pytest.mark.parametrize("place", ["./a\0b", "s3://words", "odd://words"])
def test_what_can_be_no_folder_of_a_stage_is_refused(tmp_path: Path, place: str) -> None:
    job = Job(parse_recipe({"name": "x"}), Store(str(tmp_path)))
    with pytest.raises(WrongUse, match=r"names no stage; write its folder or URL"):
        job.earlier(place)


class Listed(Filter):
    """A filter of somebody else, with a list and words in files."""

    kind: Literal["listed"] = "listed"
    banned: AnnotationFile
    words: Annotated[str, Place("words", "annotations")] = "plain"

    def open(self) -> AnyFilter:
        raise NotImplementedError


def test_an_absent_file_of_a_filter_is_named(tmp_path: Path) -> None:
    filter_ = Listed(banned=tmp_path / "banned.txt")
    with pytest.raises(WrongUse, match=r"subsets\.a\.filters\.0\.banned: there is no file .*--set .*banned=FILE"):
        filter_.check_inputs("subsets.a.filters.0", ("annotations",))
    filter_.check_inputs("subsets.a.filters.0", ("media",))
    (tmp_path / "banned.txt").touch()
    filter_.check_inputs("subsets.a.filters.0", ("annotations",))


def test_words_are_a_name_or_a_place(tmp_path: Path) -> None:
    (tmp_path / "banned.txt").touch()
    with pytest.raises(WrongUse, match=r"words: there is no file or folder .*absent\.yaml"):
        Listed(banned=tmp_path / "banned.txt", words=str(tmp_path / "absent.yaml")).check_inputs("s", ("annotations",))


COLUMNS = pa.schema([("caption", pa.string()), ("score", pa.float64()), ("words", pa.int64())])
OWN = pa.schema([("caption", pa.string()), ("words", pa.int64())])


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_rows_of_every_kind_are_read_as_they_were_written(kind: SampleKind, tmp_path: Path) -> None:
    kept = Row(
        kind=kind,
        key="a",
        identity='["video",1]',
        group="g",
        split="test",
        verdict=KEPT,
        words={name: f"word of {name}" for name in kind.described},
        numbers={name: 0.5 for name in kind.numbers[1:]},  # the first is null
        images={role: "0" * 64 for role in kind.images if role not in kind.optional},
        content="c",
        sources=(MediaFile("7.jpg", 5, "1" * 64),),
    )
    lost = Row(
        kind=kind, key="b", identity='["video",2]', group="g", split="test", verdict=REJECTED, filter="generator",
        reason="missing-media", score=0.5, detail="gone", words=dict.fromkeys(kind.described, "said"),
    )  # fmt: skip
    write_rows([kept, lost], tmp_path / "rows")
    content = (tmp_path / "rows").read_bytes()
    assert read_rows(io.BytesIO(content)) == [kept, lost]
    assert pq.read_schema(io.BytesIO(content)).names == schema_of(kind).names
    assert schema_of(kind).names[:3] == ["key", "identity", "group"]
    write_rows([kept, lost], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content


def test_rows_of_no_kind_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["a"]}), tmp_path / "rows")
    said = r"^a\.parquet: damaged \(columns key are of no kind .*run the same build again"
    with pytest.raises(BuildFailed, match=said):
        read_rows(io.BytesIO((tmp_path / "rows").read_bytes()), "a.parquet")


def test_rows_with_a_column_of_another_type_are_refused(tmp_path: Path) -> None:
    schema = schema_of(KINDS["pair"])
    place = schema.get_field_index("reason")
    pq.write_table(schema.set(place, pa.field("reason", pa.decimal128(38, 3))).empty_table(), tmp_path / "rows")
    with pytest.raises(BuildFailed, match=r"damaged \(the column reason is of decimal128"):
        read_rows(io.BytesIO((tmp_path / "rows").read_bytes()), "a.parquet")


def candidate(number: int) -> Candidate:
    return Candidate(key=f"t-{number}", group=f"g{number // 2}", split="train", identity=f"[{number}]")


def test_a_table_has_a_row_for_each_of_a_candidates_and_one_for_a_rejected(tmp_path: Path) -> None:
    results = [
        (candidate(0), TableRows("t-0", [{"caption": "one", "words": 1}, {"caption": "two"}])),
        (candidate(1), Rejected("t-1", "no-words", "line 7")),
        (candidate(2), TableRows("t-2", [{"words": 3, "caption": None}])),
    ]
    write_table_rows(iter(results), OWN, tmp_path / "rows")
    content = (tmp_path / "rows").read_bytes()
    found = pq.read_table(io.BytesIO(content))
    assert found.schema.names == table_schema(OWN).names
    assert found["key"].to_pylist() == ["t-0", "t-0", "t-1", "t-2"]
    assert found["identity"].to_pylist() == ["[0]", "[0]", "[1]", "[2]"]
    assert found["group"].to_pylist() == ["g0", "g0", "g0", "g1"] and set(found["split"].to_pylist()) == {"train"}
    assert found["verdict"].to_pylist() == [KEPT, KEPT, REJECTED, KEPT]
    assert found["filter"].to_pylist() == ["", "", "generator", ""]
    assert found["reason"].to_pylist() == ["", "", "no-words", ""] and found["detail"][2].as_py() == "line 7"
    assert found["caption"].to_pylist() == ["one", "two", None, None]
    assert found["words"].to_pylist() == [1, None, None, 3] and found["score"].null_count == 4
    write_table_rows(results, OWN, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content


def test_a_table_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'score' of its own; rename"):
        table_schema(COLUMNS)
    with pytest.raises(ValueError, match=r"t-0: .* gave no row"):
        write_table_rows([(candidate(0), TableRows("t-0", []))], OWN, tmp_path / "rows")
    with pytest.raises(pa.ArrowException):
        write_table_rows([(candidate(0), TableRows("t-0", [{"words": "many"}]))], OWN, tmp_path / "rows")
