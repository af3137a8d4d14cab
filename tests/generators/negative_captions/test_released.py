import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.generators.annotation_files import Skipped
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.replay import Released, ReplayedNegatives, read_released, released_files
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

REAL = Path(__file__).parents[3] / "../shared/data/sugarcrepe"
RECORD = {"filename": "1.jpg", "caption": "A dog.", "negative_caption": "A cat."}


@pytest.fixture
def real() -> Path:
    if not REAL.is_dir():
        pytest.skip("SugarCrepe is not in ../shared/data/sugarcrepe on this machine")
    return REAL


def replay(*captions: Path) -> ReplayedNegatives:
    return ReplayedNegatives(kind="replayed-negatives", captions=captions)


def saved(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def test_a_folder_of_sugarcrepe_tells_kinds_by_its_files(tmp_path: Path) -> None:
    for kind in KINDS:
        saved(tmp_path / f"{kind}.json", {"0": RECORD})
    saved(tmp_path / "notes.json", {"0": RECORD})
    planned = list(replay(tmp_path).open(Context("s")).plan())
    assert [f"{one.type}_{one.subtype}" for one in planned] == list(KINDS)
    assert planned[0].caption_id == "replace_obj/0" and planned[0].image_id == "1.jpg"


def test_tables_tell_kinds_by_their_columns(tmp_path: Path) -> None:
    text = "image_id,caption,negative_caption,type,subtype\n7,A dog.,A cat.,REPLACE,obj\n7,A dog.,A cat.,turn,obj\n"
    planned = replay(saved(tmp_path / "a.csv", text)).open(Context("s"))
    (one,) = planned.plan()
    assert (one.image_id, one.type, one.subtype) == ("7", "replace", "obj")
    assert planned.excluded.examples == [("unknown-kind", "a.csv 2")]
    table = pa.table(
        {"image_id": [7], "caption": ["A dog."], "negative_caption": ["A cat."], "image": [{"bytes": b""}]}
    )
    pq.write_table(table, tmp_path / "trohn.parquet")
    (record,) = read_released(tmp_path / "trohn.parquet")
    assert record == Released("trohn/1", "7", "A dog.", "A cat.", None)


def test_dirty_records_are_counted_with_their_place(tmp_path: Path) -> None:
    records = [RECORD, 3, {}, {**RECORD, "caption": "x" * 10_001}, {**RECORD, "negative_caption": "a DOG"}]
    generator = replay(saved(tmp_path / "add_att.json", records)).open(Context("s"))
    assert len(list(generator.plan())) == 1
    places = [f"add_att.json {number}" for number in (2, 3, 4, 5)]
    assert generator.excluded.examples == list(
        zip(("not-an-object", "no-caption", "too-long", "unchanged"), places, strict=True)
    )


def test_a_csv_with_a_field_of_10_mb_reads_on(tmp_path: Path) -> None:
    text = f"caption,negative_caption\n{'a' * 10_000_000},b\nA dog.,A cat.\n"
    first, second = read_released(saved(tmp_path / "a.csv", text))
    assert first.place == "a.csv 1" and first.reason == "too-long"  # type: ignore[union-attr]
    assert isinstance(second, Released) and second.record == "a/2"


def test_a_csv_with_a_line_without_end_is_not_held(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.csv", "caption,negative_caption\nA dog.,A cat.\n")
    with path.open("r+b") as stream:
        stream.truncate(100 << 20)  # a hole, read as NULs
    tracemalloc.start()
    try:
        first, second = read_released(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(first, Released) and second == Skipped("a.csv 2", "too-long")
    assert peak < 20 << 20


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "3", "neither a JSON object of records nor a list"),
        ("a.json", "{}", "no negative caption in it can be used"),
        ("a.json", '{"0": {}}', r"\(a.json 0: no-caption\)"),
        ("a.csv", "caption\nA dog.\n", "no column 'negative_caption'"),
        ("a.csv", "caption,negative_caption,caption\nA dog.,A cat.,\n", "two columns are called 'caption'"),
        ("a.csv", f"{'x' * 200_000}\nA dog.\n", r"line 1 has no names of columns \(field larger"),
        ("a.parquet", "PAR1", "not a Parquet file"),
    ],
)
def test_files_that_are_wrong_as_a_whole_say_so(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        list(read_released(saved(tmp_path / name, content)))


def test_paths_without_negatives_say_what_to_name(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", saved(tmp_path / "a.txt", "")):
        with pytest.raises(WrongUse, match="holds no negative captions; name a folder of SugarCrepe"):
            released_files([path])
    (tmp_path / "b").mkdir()
    with pytest.raises(WrongUse, match="two files are called 'a'"):
        released_files([saved(tmp_path / "a.json", {}), saved(tmp_path / "b/a.json", {})])


@pytest.mark.parametrize(
    ("folder", "counts"),
    [(".", [1652, 788, 1406, 245, 666, 2062, 692]), ("unrefined", [3124, 1703, 3177, 1413, 2305, 3967, 1789])],
)
def test_the_real_files_give_their_published_counts(real: Path, folder: str, counts: list[int]) -> None:
    generator = replay(real / folder).open(Context("s"))
    found = Counter(f"{one.type}_{one.subtype}" for one in generator.plan())
    assert [found[kind] for kind in KINDS] == counts and not generator.excluded


def test_prompts_are_planned_from_the_table(tmp_path: Path) -> None:
    record = {"filename": "1.jpg", "caption": "a TV on a desk ", "negative_caption": "a TV. under a desk"}
    captions = saved(tmp_path / "replace_rel.json", {"0": record, "1": RECORD})
    raw = {
        "name": "n",
        "stages": {"sugarcrepe": {"source": {"kind": "replayed-negatives", "captions": str(captions)}}},
        "subsets": {"prompts": {"source": {"kind": "negative-prompts", "negatives": "sugarcrepe"}}},
    }
    build_here(parse_recipe(raw), str(tmp_path / "out"), 1)
    names = ["caption", "negative_caption", "prompt", "type", "subtype"]
    first, _ = FinishedStage(Store(str(tmp_path / "out")), "prompts").read(names).to_pylist()
    assert first == {
        "caption": "A tv on a desk.",
        "negative_caption": "A tv. under a desk.",
        "prompt": "a TV under a desk, high resolution, professional, 4k, highly detailed",
        "type": "replace",
        "subtype": "rel",
    }
    captions.write_text(json.dumps({"0": record}))
    assert build_here(parse_recipe(raw), str(tmp_path / "out"), 1)["subsets"]["prompts"]["kept"] == 1
