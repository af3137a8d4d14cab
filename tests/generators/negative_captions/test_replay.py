"""Negative captions as they were released."""

import json
from pathlib import Path

import pytest

from tests.generators.made_inputs import saved
from twinset.contracts.errors import WrongUse
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.shards.contracts import Context

RECORD = {"filename": "1.jpg", "caption": "A dog.", "negative_caption": "A cat."}


def replay(*captions: Path) -> ReplayedNegatives:
    return ReplayedNegatives(kind="replayed-negatives", captions=captions).open(Context("s"))


def test_a_folder_of_sugarcrepe_tells_kinds_by_its_files(tmp_path: Path) -> None:
    for kind in (*KINDS, "notes"):
        saved(tmp_path / f"{kind}.json", {"0": RECORD})
    planned = list(replay(tmp_path).plan())
    assert [candidate.counted_as for candidate in planned] == list(KINDS)
    assert planned[0].caption_id == "replace_obj/0" and planned[0].image_id == "1.jpg"


def test_tables_tell_kinds_by_their_columns(tmp_path: Path) -> None:
    rows = ("7,A dog.,A cat.,REPLACE,obj", "7,A dog.,A cat.,turn,obj", "7,A dog.,A red dog.,add,att")
    text = "\n".join(("image_id,caption,negative_caption,type,subtype", *rows))
    source = replay(saved(tmp_path / "a.csv", text))
    first, second = source.plan()
    assert (first.image_id, first.type, first.subtype, second.counted_as) == ("7", "replace", "obj", "add_att")
    assert (first.caption_id, second.caption_id) == ("a/1", "a/3")
    assert source.excluded.examples == [("unknown-kind", "a.csv line 3")]


def test_dirty_records_are_counted_with_their_place(tmp_path: Path) -> None:
    dirty = [3, {}, {**RECORD, "caption": "x" * 10_001}, {**RECORD, "negative_caption": "a DOG"}]
    records = [RECORD, *dirty, {**RECORD, "licence": "mine"}]
    reasons = ["not-an-object", "no-caption", "too-long", "unchanged", "unknown-licence"]
    source = replay(saved(tmp_path / "add_att.json", records))
    assert len(list(source.plan())) == 1
    places = [f"add_att.json record {number}" for number in (2, 3, 4, 5, 6)]
    assert source.excluded.examples == list(zip(reasons, places, strict=True))


def test_a_key_that_is_not_utf_8_leaves_its_record_out(tmp_path: Path) -> None:
    record = json.dumps(RECORD).encode()
    path = tmp_path / "add_att.json"
    path.write_bytes(b'{"\xed\xa0\x80": %b, "1": %b}' % (record, record))
    source = replay(path)
    assert [candidate.caption_id for candidate in source.plan()] == ["add_att/1"]
    assert source.excluded.examples == [("not-utf-8", r"add_att.json '\udced\udca0\udc80'")]


def test_paths_without_negatives_say_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="holds no negative captions; name a folder of SugarCrepe"):
        replay(tmp_path).inputs()
    with pytest.raises(WrongUse, match="no column 'negative_caption'"):
        list(replay(saved(tmp_path / "c.csv", "caption\nA dog.\n")).plan())
    (tmp_path / "b").mkdir()
    with pytest.raises(WrongUse, match=r"two files are called 'a\.json'"):
        replay(saved(tmp_path / "a.json", {}), saved(tmp_path / "b/a.json", {})).inputs()
