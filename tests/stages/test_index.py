"""The index of a subset: everything planned is in it once, kept or rejected."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.stages.drawn_sources import Dark
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Score
from twinset.contracts.receipt import IndexRecord, parsed
from twinset.shards.storage.store import Store
from twinset.stages.finalise import disagreeing
from twinset.stages.index import FLAGGED, is_indexed, receipts_digest, summarise, write_index
from twinset.stages.verify import verify_stage

SCENES = [("a", 1, 2), ("a", 1, 3), ("gone", 1, 2), ("gone", 1, 9), ("b", 7, 8), ("b", 7, 200), ("b", 7, 9)]
FILES = ("index.parquet", "rejections.parquet", "sizes.json", "index.json")


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    """Shards of ``a`` and ``gone`` (two kept, two rejected) and ``b`` (one rejected by each filter, one kept)."""
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 2, ["test-dark", "test-apart"])
    build.make_all()
    return build


def files(build: Any) -> dict[str, bytes]:
    return {name: build.store.read(f"eq-x/_meta/{name}") for name in FILES}


def test_the_index_holds_every_candidate_once(built: Any, tmp_path: Path) -> None:
    record = write_index(built.store, built.state(), "pair")
    assert (record.planned, record.kept, record.rows) == (7, 2, 2)
    meta = tmp_path / "out/eq-x/_meta"
    index = pq.read_table(meta / "index.parquet").to_pylist()
    assert [row["identity"] for row in index] == ['["a",1,3]', '["b",7,9]']
    assert [row["tar"] for row in index] == ["test/00000.tar", "test/00002.tar"]
    assert [row["caption1"] for row in index] == ["grey 3", "grey 9"]
    assert index[0]["sources"][0]["path"] == "a.mp4" and len(index[0]["image0_sha256"]) == 64
    rejections = pq.read_table(meta / "rejections.parquet").to_pylist()
    assert {row["key"] for row in (*index, *rejections)} == {
        one.key for number in range(3) for one in built.candidates(number)
    }
    assert [(row["identity"], row["filter"], row["reason"]) for row in rejections] == [
        ('["a",1,2]', "test-apart", "near"),
        ('["gone",1,2]', "generator", "missing-media"),
        ('["gone",1,9]', "generator", "missing-media"),
        ('["b",7,8]', "test-apart", "near"),
        ('["b",7,200]', "test-dark", "bright"),
    ]
    assert rejections[4]["score"] == 200.0 and rejections[1]["caption0"] == "grey 1"
    assert json.loads((meta / "sizes.json").read_bytes()) == {"test/00000.tar": 1, "test/00002.tar": 1}


def test_what_a_subset_holds_in_numbers(built: Any) -> None:
    write_index(built.store, built.state(), "pair")
    summary = summarise(built.store, built.state())
    assert (summary.planned, summary.kept, summary.kept_by_split) == (7, 2, {"test": 2})
    assert summary.by_filter == {
        "generator": {"missing-media": 2},
        "test-apart": {"near": 2},
        "test-dark": {"bright": 1},
    }
    assert summary.tars == {"test/00000.tar": 1, "test/00002.tar": 1} and summary.images == ("image0", "image1")
    assert summary.bytes == sum(built.store.size(f"eq-x/{tar}") for tar in summary.tars)


def test_flags_of_what_is_kept_are_listed_and_counted(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flags(_: Any, frames: Any) -> list[Score]:
        greys = [float(frame.pixels[0, 0, 0]) for frame in frames]
        return [Score("grey", grey, "odd" if grey % 2 else "") for grey in greys]

    with monkeypatch.context() as patched:
        patched.setattr(Dark, "judge", flags)
        patched.setattr(Dark, "reasons", {"odd": "an odd grey"})
        build = planned_build(Store(str(tmp_path / "out")), "eq-x", [("a", 1, 3), ("a", 2, 8)], 2, ["test-dark"])
        build.make_all()
    write_index(build.store, build.state(), "pair")
    (row,) = pq.read_table(tmp_path / "out/eq-x/_meta" / FLAGGED).to_pylist()
    assert (row["identity"], row["tar"], row["reason"]) == ('["a",1,3]', "test/00000.tar", "odd")
    summary = summarise(build.store, build.state())
    assert summary.flagged == {"odd": 1} and summary.kept == 2
    # Made again without flags, there is no list of them either.
    build.store.remove("eq-x/_meta/receipts/00000.json")
    build.make(0)
    write_index(build.store, build.state(), "pair")
    assert summarise(build.store, build.state()).flagged == {}
    assert build.store.size(f"eq-x/_meta/{FLAGGED}") is None


def test_the_index_has_the_same_bytes_every_time(built: Any, tmp_path: Path) -> None:
    write_index(built.store, built.state(), "pair")
    first = files(built)
    for name in FILES:
        built.store.remove(f"eq-x/_meta/{name}")
    write_index(Store(f"file://{tmp_path / 'out'}"), built.state(), "pair")
    assert files(built) == first


def test_an_index_vouches_for_the_shards_it_was_written_of(built: Any) -> None:
    assert not is_indexed(built.store, built.state())
    write_index(built.store, built.state(), "pair")
    assert is_indexed(built.store, built.state())
    built.store.write("eq-x/_meta/index.parquet", b"half")
    assert not is_indexed(built.store, built.state())


def test_an_index_of_another_size_is_written_again(built: Any) -> None:
    write_index(built.store, built.state(), "pair")
    first = files(built)
    built.store.write("eq-x/_meta/index.parquet", b"half")
    write_index(built.store, built.state(), "pair")
    assert files(built) == first


def test_an_interrupted_index_vouches_for_nothing(built: Any, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_index(built.store, built.state(), "pair")
    (media / "gone.mp4").write_bytes(b"here")
    built.make_all()
    move_in = built.store.move_in

    def crashes(spooled: Path, path: str) -> None:
        if path.endswith("rejections.parquet"):
            raise OSError(5, "Input/output error")
        move_in(spooled, path)

    monkeypatch.setattr(built.store, "move_in", crashes)
    with pytest.raises(OSError, match="Input/output error"):
        write_index(built.store, built.state(), "pair")
    assert built.store.size("eq-x/_meta/index.json") is None


def test_rows_that_disagree_with_their_receipt_are_named(built: Any) -> None:
    state = built.state()
    built.store.write("eq-x/_meta/rows/00000.parquet", built.store.read("eq-x/_meta/rows/00001.parquet"))
    with pytest.raises(BuildFailed, match=r"rows/00000\.parquet: 0 kept and 2 rejected.*receipt says 1 of 2.*remove"):
        write_index(built.store, state, "pair")
    built.store.remove("eq-x/_meta/rows/00000.parquet")
    with pytest.raises(BuildFailed, match=r"rows/00000\.parquet: absent.*receipts/00000\.json and run the build"):
        write_index(built.store, state, "pair")


def test_the_record_is_bound_to_the_shards_not_to_when_they_were_made(built: Any) -> None:
    first = write_index(built.store, built.state(), "pair")
    built.store.remove("eq-x/_meta/receipts/00001.json")
    built.make_all()
    state, wrong = disagreeing(built.store, built.state())
    assert wrong == [] and receipts_digest(state.done) == first.digest
    assert parsed(IndexRecord, built.store.read("eq-x/_meta/index.json")) == first


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_index_that_is_gone_is_written_again(built: Any, name: str) -> None:
    write_index(built.store, built.state(), "pair")
    first = files(built)
    built.store.remove(f"eq-x/_meta/{name}")
    assert not is_indexed(built.store, built.state())
    write_index(built.store, built.state(), "pair")
    assert files(built) == first and is_indexed(built.store, built.state())


@pytest.mark.parametrize("name", ["index.parquet", "rejections.parquet", "sizes.json"])
def test_an_audit_names_a_file_of_the_index_with_another_bit(built: Any, name: str) -> None:
    write_index(built.store, built.state(), "pair")
    path = f"eq-x/_meta/{name}"
    content = bytearray(built.store.read(path))
    content[len(content) // 2] ^= 1
    built.store.write(path, bytes(content))
    first = str(next(verify_stage(built.store, built.state())))
    assert first.startswith(path) and "remove eq-x/_meta/index.json and run the same build again" in first


def test_an_audit_names_an_index_of_other_shards(built: Any) -> None:
    record = write_index(built.store, built.state(), "pair")
    built.store.write("eq-x/_meta/index.json", record.model_copy(update={"digest": "0" * 32}).to_bytes())
    first = str(next(verify_stage(built.store, built.state())))
    assert first.startswith("eq-x/_meta/index.json: cannot be read, or of other shards than the receipts; remove eq-x")
