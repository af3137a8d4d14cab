"""Reading back what a build made: the project's own reader, webdataset and Hugging Face datasets agree.

A finished stage as a later one reads it: what is no such stage, or damaged, is named with its remedy.

Absent inputs are named before any work, of sources and of filters alike.
Rows of samples and of tables: written column by column, read back, and the same bytes for the same rows.
"""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset as wds
from PIL import Image

from tests.generators.finished_stage import write_index
from tests.made_datasets import MadeDataset
from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import SampleKind
from twinset.contracts.kinds.samples import MediaFile, Rejected, TableRows
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import parse_recipe
from twinset.contracts.source import AnnotationFile, Place
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import finished, index_batches, index_rows, read_from_tar, read_samples, read_spread, read_tar
from twinset.shards.rows import KEPT, REJECTED, Row, read_rows, schema_of, table_schema, write_rows, write_table_rows
from twinset.shards.storage import layout
from twinset.shards.storage.member_headers import read_members
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.job import Job


def test_all_kept_pairs_come_back_in_plan_order(made_pairs: MadeDataset) -> None:
    for subset, keys in made_pairs.kept.items():
        pairs = list(read_samples(made_pairs.store, subset))
        assert [pair.key for pair in pairs] == keys
        for pair in pairs:
            assert [pair.json.captions.caption0[0], pair.json.captions.caption1[0]] == list(pair.texts.values())
            assert hashlib.sha256(pair.images["image0"]).hexdigest() == pair.json.image0.sha256
            assert Image.open(io.BytesIO(pair.images["image1"])).size == pair.json.image1.size == (96, 72)
        assert len(list(read_samples(made_pairs.store, subset, limit=5))) == 5
        assert list(read_samples(made_pairs.store, subset, limit=0)) == []


def test_a_spread_covers_the_subset_evenly_and_is_the_same_every_time(made_pairs: MadeDataset) -> None:
    keys = made_pairs.kept["eq-gebc"]
    spread = [pair.key for pair in read_spread(made_pairs.store, "eq-gebc", 4)]
    assert spread == [keys[1], keys[3], keys[5], keys[7]]
    assert [pair.key for pair in read_spread(made_pairs.store, "eq-gebc", 100)] == keys
    assert read_spread(made_pairs.store, "eq-gebc", 0) == []


def test_webdataset_returns_the_rows(made_pairs: MadeDataset) -> None:
    tars = [str(path) for path in sorted((made_pairs.root / "eq-ag" / "test").glob("*.tar"))]
    assert [Path(tar).name for tar in tars] == ["00000.tar", "00002.tar", "00003.tar"]
    rows = list(wds.WebDataset(tars, shardshuffle=False).decode("pil"))
    assert [row["__key__"] for row in rows] == made_pairs.kept["eq-ag"]
    assert all(row["image0.jpg"].size == (96, 72) and row["json"]["kind"] == "pair" for row in rows)


def test_hugging_face_finds_the_tars_beside_the_parquet(
    made_pairs: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(str(made_pairs.root / "eq-ag"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"test"}
    assert loaded["test"]["__key__"] == made_pairs.kept["eq-ag"]
    row = loaded["test"][0]
    assert row["image0.jpg"].size == (96, 72)
    assert row["json"]["captions"]["caption0"] == [row["caption0.txt"], "red disc"]


def test_hugging_face_takes_no_dataset_for_another_of_its_name(
    made_pairs: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")

    def keys() -> list[str]:
        made_pairs.describe("eq-ag")
        loaded = datasets.load_dataset(str(made_pairs.root / "eq-ag"), split="test", cache_dir=str(tmp_path / "cache"))
        return list(loaded["__key__"])

    assert keys() == made_pairs.kept["eq-ag"]
    for path in ("_meta/receipts/00003.json", "test/00003.tar"):
        made_pairs.store.remove(f"eq-ag/{path}")
    left = keys()
    assert left == [one.key for one in read_samples(made_pairs.store, "eq-ag")]
    assert 0 < len(left) < len(made_pairs.kept["eq-ag"])


MEMBERS = {
    "a path out of the folder": [("../../escape.json", tarfile.REGTYPE, b"{}")],
    "a folder": [("eq-ag/a.json", tarfile.REGTYPE, b"{}")],
    "a link": [("a.json", tarfile.SYMTYPE, b"")],
    "a field unknown to us": [("a.pickle", tarfile.REGTYPE, b"cos\nsystem\n")],
    "a sample without images": [("a.json", tarfile.REGTYPE, b"{}")],
    "a field twice": [("a.json", tarfile.REGTYPE, b"{}")] * 2,
}


@pytest.mark.parametrize("members", MEMBERS.values(), ids=MEMBERS)
def test_a_hostile_tar_is_refused_by_name(tmp_path: Path, members: list[tuple[str, bytes, bytes]]) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, kind, content in members:
            header = tarfile.TarInfo(name)
            header.type, header.size, header.linkname = kind, len(content), "/etc/passwd" if not content else ""
            tar.addfile(header, io.BytesIO(content))
    with pytest.raises(BrokenTar, match=r"bad\.tar"):
        list(read_tar(Store(str(tmp_path)), "bad.tar"))


def test_a_sparse_member_that_says_it_is_endless_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("eq-ag-0.image0.jpg")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 1 << 62
    (tmp_path / "00000.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    with (tmp_path / "00000.tar").open("rb") as stream, pytest.raises(BrokenTar, match="cut short"):
        list(read_members(stream, "00000.tar"))


def test_a_tar_that_lacks_its_last_samples_is_refused(made_pairs: MadeDataset) -> None:
    path = made_pairs.root / layout.tar("eq-ag", "test", 2)
    content = path.read_bytes()
    with tarfile.open(path) as tar:
        last = tar.getmembers()[-5]  # the first field of the last sample
    path.write_bytes(content[: last.offset])
    with pytest.raises(BrokenTar, match=r"00002\.tar.*cut short.*build this shard again"):
        list(read_samples(made_pairs.store, "eq-ag"))


def test_a_receipt_that_names_another_folder_is_refused(made_pairs: MadeDataset) -> None:
    receipt = made_pairs.receipts["eq-ag"][0].model_copy(update={"split": "../../elsewhere"})
    made_pairs.store.write(layout.receipt("eq-ag", 0), receipt.to_bytes())
    with pytest.raises(BrokenTar, match=r"00000\.json"):
        finished(made_pairs.store, "eq-ag")


@pytest.mark.parametrize("name", ["triplets", "index-only", "change-object"])
def test_hugging_face_reads_every_kind(
    made_triplets: MadeDataset, made_templates: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    made_triplets.describe(name)
    split = "test" if name == "change-object" else "train"
    found = list(datasets.load_dataset(str(made_triplets.root / name), split=split, cache_dir=str(tmp_path / "cache")))
    assert len(found) == 8
    if name == "index-only":
        assert found[0]["condition"] == "beside red disc" and found[0]["target_id"] == "1"
        assert found[0]["identity"] == "[0]"
        return
    for row, one in zip(found, read_samples(made_triplets.store, name), strict=True):
        assert row["__key__"] == one.key and row["condition.txt"] == one.texts["condition"]
        last = list(one.images)[-1]
        assert row[f"{last}.jpg"].size == one.json.images[last].size and row["json"]["kind"] == one.kind.name


@pytest.mark.parametrize("name", ["two-images", "focus-attribute"])
def test_webdataset_reads_every_image(made_triplets: MadeDataset, made_templates: MadeDataset, name: str) -> None:
    tars = sorted(str(path) for path in (made_triplets.root / name).glob("*/*.tar"))
    rows = list(wds.WebDataset(tars, shardshuffle=False).decode("pil"))
    stored = list(read_samples(made_triplets.store, name))
    assert [row["__key__"] for row in rows] == [one.key for one in stored] and len(rows) == 8
    for row, one in zip(rows, stored, strict=True):
        sizes = {role: row[f"{role}.jpg"].size for role in one.images}
        assert sizes == {role: one.json.images[role].size for role in one.images}


def test_some_samples_of_a_tar_are_as_all_of_it_are_read(made_pairs: MadeDataset) -> None:
    path = layout.tar("eq-ag", "test", 2)
    whole = {one.key: one for one in read_tar(made_pairs.store, path)}
    wanted = [*whole][::2]
    some = {one.key: one for one in read_from_tar(made_pairs.store, path, [*wanted, "eq-ag-absent"], "1")}
    assert some == {key: whole[key] for key in wanted} and len(whole) > len(some) > 0


def test_a_tar_that_is_cut_short_gives_no_samples(made_pairs: MadeDataset) -> None:
    path = layout.tar("eq-ag", "test", 2)
    keys = [one.key for one in read_tar(made_pairs.store, path)]
    tar = made_pairs.root / path
    whole = tar.read_bytes()
    for length in (0, 700, len(whole) // 2):
        tar.write_bytes(whole[:length])
        with pytest.raises(BrokenTar, match=r"00002\.tar"):
            list(read_from_tar(made_pairs.store, path, keys, str(length)))
    tar.unlink()
    with pytest.raises(BrokenTar, match="absent"):
        list(read_from_tar(made_pairs.store, path, keys, "gone"))


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
