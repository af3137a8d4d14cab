"""Plans, samples and rows on disk: what is read is what was written, and damage is named."""

import io
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset as wds
from PIL import Image

from tests.generators.finished_stage import write_index
from tests.made_datasets import MadeDataset
from tests.made_samples import Planned, pair_shards, template_shards, text_pair_shards, triplet_shards
from twinset.cards.describe import describe
from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.samples import encode_image
from twinset.contracts.licences.terms import Terms
from twinset.contracts.recipe import Encoding
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.shards.plan import (
    LARGEST_GROUP,
    PlanSummary,
    plan_digest,
    read_shards,
    read_slice,
    shards_of,
    slice_digest,
    write_plan,
)
from twinset.shards.read import read_from_tar, read_samples, read_tar
from twinset.shards.rows import content_digest, fields_of, stored
from twinset.shards.storage import layout
from twinset.shards.storage.parquet_reader import LONGEST_VALUE, ROWS, batches
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.plan import check_plan


def candidate(key: str, group: str, split: str = "test", caption: str = "a dog") -> FramePairCandidate:
    placed = {"key": key, "group": group, "split": split, "video": group}
    return FramePairCandidate(
        **placed, captions0=(caption, "second"), captions1=(), at0=0.1, at1=2.0, change="step", provenance="{}"
    )


def candidates_of(groups: Sequence[tuple[str, int, str]]) -> list[Candidate]:
    hostile = "hostile \0 'é' 红\n"
    return [candidate(f"k-{g}-{n}", g, split, hostile) for g, count, split in groups for n in range(count)]


def plan_of(candidates: Sequence[Candidate], folder: Path, shard_size: int = 3) -> PlanSummary:
    (folder / "plan").mkdir(parents=True)
    return write_plan(iter(candidates), FramePairCandidate, shard_size, folder / "plan")


def test_groups_are_never_split_splits_never_mixed_and_shards_fill_up() -> None:
    sizes = [("a", 2, "test"), ("b", 2, "test"), ("c", 7, "test"), ("d", 1, "test"), ("e", 1, "test")]
    shards = list(shards_of(iter(candidates_of(sizes)), 3))
    assert ["".join(planned.group for planned in shard) for shard in shards] == ["aabb", "ccccccc", "de"]
    sizes = [("a", 2, "train"), ("b", 1, "val"), ("c", 2, "train"), ("d", 3, "val"), ("e", 1, "train")]
    shards = list(shards_of(iter(candidates_of(sizes)), 3))
    assert [{planned.split for planned in shard} for shard in shards] == [{"train"}, {"train"}, {"val"}]
    assert "".join(planned.group for planned in shards[2]) == "bddd"


def test_candidates_come_back_as_they_were_a_row_group_a_shard(tmp_path: Path) -> None:
    candidates = candidates_of([("a", 4, "test"), ("b", 2, "val"), ("c", 3, "test")])
    summary = plan_of(candidates, tmp_path)
    with (tmp_path / "plan/00000.parquet").open("rb") as stream:
        shards = [read_slice(stream, number, FramePairCandidate) for number in range(len(summary.shards))]
    by_key = {planned.key: planned for shard in shards for planned in shard}
    assert by_key == {planned.key: planned for planned in candidates} and summary.planned == 9
    assert pq.ParquetFile(tmp_path / "plan/00000.parquet").num_row_groups == 3
    with (tmp_path / "plan/shards.parquet").open("rb") as stream:
        assert tuple(read_shards(stream, "shards.parquet")) == summary.shards
    for shard, known in zip(shards, summary.shards, strict=True):
        assert known.slice == slice_digest(shard) and known.planned == len(shard)
        assert {planned.split for planned in shard} == {known.split}
    assert plan_digest(summary.shards) == summary.digest


def test_a_key_that_is_planned_twice_and_a_group_in_two_places_are_refused(tmp_path: Path) -> None:
    whole = [*candidates_of([("a", 2, "test"), ("b", 9, "test")]), candidate("k-val", "a", "val")]
    check_plan(tmp_path / "whole/plan", plan_of(whole, tmp_path / "whole"), "ann.json")
    twice = "k-a-1 is planned twice, in group a and in group c; correct"
    apart = r"the candidates of group a do not follow each other \(k-late comes"
    for further, problem in ((candidate("k-a-1", "c"), twice), (candidate("k-late", "a"), apart)):
        folder = tmp_path / further.key
        with pytest.raises(WrongUse, match=rf"ann\.json: {problem}"):
            check_plan(folder / "plan", plan_of([*whole, further], folder), "ann.json")


def test_a_group_that_no_worker_could_hold_is_refused_while_it_is_read(tmp_path: Path) -> None:
    read = 0

    def endless() -> Iterator[Candidate]:
        nonlocal read
        yield from candidates_of([("small", 5, "test")])
        for read in range(10 * LARGEST_GROUP):
            yield candidate(f"k{read}", "huge")

    with pytest.raises(WrongUse, match=r"ann\.json: 'huge' has more than 20,000 candidates.* correct or remove them"):
        write_plan(endless(), FramePairCandidate, 3, tmp_path, "ann.json")
    assert read == LARGEST_GROUP and not (tmp_path / "shards.parquet").exists()


def first(shards: list[list[Planned]]) -> Any:
    return shards[0][0].made


PAIR_OF_IMAGES = first(pair_shards("p"))
TRIPLET_OF_IMAGES, BARE_TRIPLET = first(triplet_shards("t")), first(triplet_shards("t", images=False))
TEXT_PAIR, BARE_TEXT_PAIR = first(text_pair_shards("n")), first(text_pair_shards("n", images=False))
TEMPLATE = first(template_shards("f", "focus-object"))


def written(sample: Sample) -> dict[str, bytes]:
    images = {role: encode_image(frame, Encoding(format="png")) for role, frame in sample.pictures().items()}
    return dict(fields_of(sample, images, "genecis", Terms("CC0-1.0"), "png"))


@pytest.mark.parametrize(
    "sample, name",
    [
        *((PAIR_OF_IMAGES, name) for name in ("image0.png", "caption1.txt", "json")),
        *((TRIPLET_OF_IMAGES, "target.png"), (TEXT_PAIR, "negative_caption.txt"), (TEMPLATE, "gallery03.png")),
    ],
)
def test_a_sample_that_lacks_something_is_refused(sample: Sample, name: str) -> None:
    with pytest.raises(BrokenTar, match=rf"x\.tar: {sample.key} has \[.*build this shard again"):
        stored(sample.key, {field: value for field, value in written(sample).items() if field != name}, "x.tar")


def test_the_same_question_is_a_duplicate_and_another_is_none() -> None:
    def same(first: Sample, images: dict[str, str], second: Sample, shown: dict[str, str] | None = None) -> bool:
        return content_digest(first, images) == content_digest(second, images if shown is None else shown)

    hashes = {"reference": "a", "target": "b"}
    reworded = replace(TRIPLET_OF_IMAGES, captions={**TRIPLET_OF_IMAGES.captions, "target": "my disc"})
    assert same(TRIPLET_OF_IMAGES, hashes, reworded)
    assert not same(TRIPLET_OF_IMAGES, hashes, TRIPLET_OF_IMAGES, {"reference": "b", "target": "a"})
    # Without images the words are all that tells triplets apart.
    assert not same(BARE_TRIPLET, {}, replace(reworded, reference=None, target=None, distractor=None))
    pair = PAIR_OF_IMAGES
    mirrored = replace(pair, captions0=pair.captions1, captions1=pair.captions0)
    assert same(pair, {"image0": "a", "image1": "b"}, mirrored, {"image0": "b", "image1": "a"})
    renamed = {"image_id": "8", "type": "swap"}
    assert same(TEXT_PAIR, {"image": "a"}, replace(TEXT_PAIR, **renamed))
    assert not same(TEXT_PAIR, {"image": "a"}, TEXT_PAIR, {"image": "b"})
    # Without images the ids of text pairs tell them apart.
    assert not same(BARE_TEXT_PAIR, {}, replace(BARE_TEXT_PAIR, **renamed))


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """`datasets.load_dataset` of a folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")

    def rows(folder: Path, split: str) -> list[dict[str, Any]]:
        return list(datasets.load_dataset(str(folder), split=split, cache_dir=str(tmp_path / "cache")))

    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split"),
    [("eq-ag", "test"), ("two-images", "train"), ("focus-attribute", "test"), ("triplets", "train")],
)
def test_webdataset_and_hugging_face_read_every_kind(
    made_pairs: MadeDataset, made_triplets: MadeDataset, made_templates: MadeDataset, load: Any, name: str, split: str
) -> None:
    describe(made_triplets.store, name, made_triplets.index(name))
    tars = sorted(str(path) for path in (made_triplets.root / name / split).glob("*.tar"))
    streamed = list(wds.WebDataset(tars, shardshuffle=False).decode("pil"))
    for rows in (streamed, load(made_triplets.root / name, split)):
        assert len(rows) == 8
        for row, sample in zip(rows, read_samples(made_triplets.store, name), strict=True):
            sizes = {role: Image.open(io.BytesIO(image)).size for role, image in sample.images.items()}
            assert {role: row[f"{role}.jpg"].size for role in sample.images} == sizes
            assert row["__key__"] == sample.key and {text: row[f"{text}.txt"] for text in sample.texts} == sample.texts
    assert [sample.key for sample in read_samples(made_triplets.store, name, limit=5)] == made_triplets.kept[name][:5]


@pytest.mark.slow
def test_hugging_face_reads_an_index(made_triplets: MadeDataset, load: Any) -> None:
    describe(made_triplets.store, "index-only", made_triplets.index("index-only"))
    row = load(made_triplets.root / "index-only", "train")[0]
    assert row["condition"] == "beside red disc" and row["identity"] == "[0]"


@pytest.mark.slow
def test_hugging_face_takes_no_dataset_for_another_of_its_name(made_pairs: MadeDataset, load: Any) -> None:
    def keys() -> list[object]:
        describe(made_pairs.store, "eq-ag", made_pairs.index("eq-ag"))
        return [row["__key__"] for row in load(made_pairs.root / "eq-ag", "test")]

    assert keys() == made_pairs.kept["eq-ag"]
    for path in ("_meta/receipts/00003.json", "test/00003.tar"):
        made_pairs.store.remove(f"eq-ag/{path}")
    assert keys() == [pair.key for pair in read_samples(made_pairs.store, "eq-ag")]


@pytest.mark.parametrize(
    "names", [["../../a.json"], ["eq-ag/a.json"], ["a.pickle"], ["a.json"], ["a.json", "a.json"]], ids=str
)
def test_a_hostile_tar_is_refused_by_name(tmp_path: Path, names: list[str]) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(BrokenTar, match=r"bad\.tar"):
        list(read_tar(Store(str(tmp_path)), "bad.tar"))


def test_some_samples_of_a_tar_are_as_all_of_it_are_read(made_pairs: MadeDataset) -> None:
    tar = layout.tar("eq-ag", "test", 2)
    whole = {pair.key: pair for pair in read_tar(made_pairs.store, tar)}
    wanted = [*whole][::2]
    read = {pair.key: pair for pair in read_from_tar(made_pairs.store, tar, [*wanted, "eq-ag-absent"], "1")}
    assert read == {key: whole[key] for key in wanted} and len(whole) > len(read) > 0


def test_an_index_without_a_column_is_named(tmp_path: Path) -> None:
    earlier = write_index(pa.table({"key": ["1"], "caption_id": ["1"]}), tmp_path, "words", 1)
    with pytest.raises(WrongUse, match=r"/words/_meta/index\.parquet: has no column .image_id.; name a stage"):
        earlier.read(["key", "image_id"])


LONG = "x" * 20_000


def parquet(folder: Path, column: Any) -> Path:
    pq.write_table(pa.table({"a": column}), folder / "rows.parquet", compression="zstd")
    return folder / "rows.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("column", [[LONG] * 65_536, [{"bytes": LONG.encode()}] * 65_536], ids=["text", "struct"])
def test_a_value_that_is_repeated_is_expanded_a_few_rows_at_a_time(tmp_path: Path, column: Any) -> None:
    """The proof of S11: 625 bytes, of which a batch of the usual size took 1.3 GB."""
    path = parquet(tmp_path, column)
    assert path.stat().st_size < 2_000
    sizes = [(batch.num_rows, batch.nbytes) for batch in batches(path, ["a"])]
    assert sum(rows for rows, _ in sizes) == 65_536 and max(size for _, size in sizes) < 1.1 * ROWS * LONGEST_VALUE


@pytest.mark.parametrize("value", ["x" * (2 << 20), ["a", "x" * (2 << 20)]], ids=["text", "list"])
def test_a_long_value_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(pa.ArrowException, match="holds a value of 2,097,152 bytes"):
        list(batches(parquet(tmp_path, [value]), ["a"]))
