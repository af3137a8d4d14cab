"""Reading back what a build made: the project's own reader, webdataset and Hugging Face datasets agree."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import webdataset as wds
from PIL import Image

from tests.made_datasets import MadeDataset
from twinset.shards.read import finished, read_from_tar, read_samples, read_spread, read_tar
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, read_members


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
    with (tmp_path / "00000.tar").open("rb") as stream, pytest.raises(BrokenTar, match="more than the tar"):
        list(read_members(stream, "00000.tar"))


def test_a_tar_cut_short_is_refused_by_name(made_pairs: MadeDataset) -> None:
    path = made_pairs.root / layout.tar("eq-ag", "test", 2)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BrokenTar, match=r"00002\.tar"):
        list(read_samples(made_pairs.store, "eq-ag"))


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
