"""What pairs are planned of annotations, and what cannot be used, with its reason.

The counts of the real files are held by tests/guard/test_oracles.py.
"""

import json
import os
import pickle
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests.generators.made_inputs import saved
from tests.generators.video.numbered_videos import RATE, make_video, read
from twinset.cards.lineage import citations_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.contracts.source import SOURCES
from twinset.generators.video.safe_pickle import load
from twinset.shards.contracts import Context

ROOT = Path(__file__).parents[3]


def opened(kind: str, *annotations: Path, **settings: Any) -> Any:
    """A source that is ready to plan, its media beside the annotations."""
    paths = annotations if len(annotations) > 1 else annotations[0]
    fields = {"kind": kind, "annotations": paths, "media": annotations[0].parent, **settings}
    source: Any = SOURCES.find(kind).model_validate(fields)
    return source.open(Context("eq"))


def planned(kind: str, *annotations: Path, **settings: Any) -> list[Any]:
    return list(opened(kind, *annotations, **settings).plan())


def written(kind: str, folder: Path, records: Sequence[Any]) -> Path:
    """An annotation of one video, or of lines; a text is a line that is no JSON."""
    whole = {"gebc": {"v": records}, "youcook2": {"database": {"v": {"annotations": records}}}}.get(kind)
    if whole:
        return saved(folder / f"{kind}.json", whole)
    path = folder / f"{kind}.jsonl"
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records), "utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "content", "problem"),
    [
        ("action-genome", pickle.dumps([1]), "holds a list, not frames by name"),
        ("youcook2", b'{"database": {"v": {}}}', "database.v.annotations: Field required"),
        ("gebc", b'{"caption": "caf\xe9"}', "not JSON that can be read .*byte 0xe9 in position 16"),
        ("gebc", b'{"a": 1,\n "b": oops}\n', "not JSON that can be read .*line 2 column 7"),
        ("gebc", b'{"a": 1, "b": {"c": 1, "\\u0063": 2}}', "not JSON that can be read .*the key 'c' twice"),
        ("gebc", b"[" * 200_000, "not JSON that can be read .*recursion"),
    ],
)
def test_bad_files_say_where(kind: str, content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / ("annotation.pkl" if kind == "action-genome" else "annotation.json")
    path.write_bytes(content)
    with pytest.raises(WrongUse, match=rf"annotation\..*{problem}"):
        planned(kind, path)


# Action Genome

KINDS = ("attention_relationship", "spatial_relationship", "contacting_relationship")
HOLD = (["looking_at"], ["in_front_of"], ["holding"])
AWAY = (["not_looking_at"], ["behind"], ["not_contacting"])


def thing(name: str, attention: Any, spatial: Any, contacting: Any, **more: Any) -> dict[str, Any]:
    return {"class": name, **dict(zip(KINDS, (attention, spatial, contacting), strict=True)), **more}


def story(*relations: tuple[Any, Any, Any], name: str = "bag") -> list[Any]:
    return [{"frame": f"A.mp4/{n}0.png", "objects": [thing(name, *three)]} for n, three in enumerate(relations, 1)]


def test_captions_are_worded_as_published(tmp_path: Path) -> None:
    published = {  # EqBen, Figure 16
        ("clothes", "in_front_of", "holding"): "holding the clothes which is in front of",
        ("cup_glass_bottle", "in_front_of", "drinking_from"): "drinking from the bottle which is in front of",
        ("sofa/couch", "beneath", "lying_on"): "lying on the sofa which is beneath",
    }
    for (name, spatial, contacting), caption in published.items():
        frames = story((["unsure"], [spatial], [contacting]), AWAY, name=name)
        (pair,) = planned("action-genome", written("action-genome", tmp_path, frames))
        assert pair.captions0 == (f"The person is {caption} him/her.",)
        assert (pair.video, pair.group, pair.at0, pair.at1) == ("A.mp4", "A.mp4", 10.0, 20.0)


def test_captions_that_the_other_frame_lacks_lead(tmp_path: Path) -> None:
    gazes = ("looking_at", "touching"), ("unsure", "wiping")
    frames = story(*(([gaze], ["behind"], ["holding", deed]) for gaze, deed in gazes))
    (pair,) = planned("action-genome", written("action-genome", tmp_path, frames))
    assert [caption.split()[3] for caption in pair.captions0] == ["touching", "holding"]
    assert [caption.split()[3] for caption in pair.captions1] == ["wiping", "holding"]
    for contacting in (None, ["other_relationship"]):  # what cannot be said
        path = written("action-genome", tmp_path, story(HOLD, (["unsure"], ["behind"], contacting)))
        made = opened("action-genome", path)
        assert list(made.plan()) == [] and made.excluded == {"pair-unsayable": 1}


#: The tens of the frames of each pair, by how many are skipped: what the loop of EqBen, 4.1, gives.
SAMPLED = {
    0: ["12", "13", "16", "18", "24", "25", "27", "34", "35", "37", "46", "48", "56", "58", "67", "78"],
    2: ["12", "16", "46", "78"],
}


@pytest.mark.parametrize("skip", SAMPLED)
def test_frames_are_sampled_sparsely_whatever_the_order_and_form_of_the_file(skip: int, tmp_path: Path) -> None:
    frames = story(HOLD, AWAY, AWAY, HOLD, HOLD, AWAY, HOLD, AWAY, name="cup_glass_bottle")
    pairs = planned("action-genome", written("action-genome", tmp_path, frames), skip=skip)
    assert [f"{pair.at0 / 10:.0f}{pair.at1 / 10:.0f}" for pair in pairs] == SAMPLED[skip]
    path = pickled(tmp_path / "frames.pkl", {frame["frame"]: frame["objects"] for frame in reversed(frames)}, 2)
    assert planned("action-genome", path, skip=skip) == pairs


# GEBC


def boundary(name: str, time: Any, following: Any, **more: Any) -> dict[str, Any]:
    return {
        **{"boundary_id": name, "timestamp": time, "next_timestamp": following},
        **{"subject": "man in red cap", "status_before": f"sitting at {name}", "status_after": f"stand at {name}"},
        **more,
    }


THREE = [boundary("v_0A", 2.0, 4.0), boundary("v_1A", 4.0, 8.0), boundary("v_2A", 8.0, 10.0)]


def twins(folder: Path, boundaries: Sequence[Any], **settings: Any) -> list[Any]:
    return planned("gebc", written("gebc", folder, boundaries), **settings)


def test_twins_lie_before_a_boundary_and_after_the_next(tmp_path: Path) -> None:
    for skip, times in ((0, [(1, 3), (3, 6), (6, 9)]), (1, [(1, 6), (3, 9)]), (3, [])):
        assert [(pair.at0, pair.at1) for pair in twins(tmp_path, THREE, skip=skip)] == times


def test_captions_of_one_moment_are_no_neighbours(tmp_path: Path) -> None:
    more = [boundary("v_0B", 2.0, 4.0, subject="dog"), boundary("v_1B", 4.0, 8.0, subject="dog")]
    flag = boundary("v_0C", 2.0, 4.0, status_before="/0", status_after="/1")
    first, _ = twins(tmp_path, [*THREE[:1], more[0], flag, *THREE[1:], more[1]])
    assert first.captions0 == ("Man in red cap sitting at v_0A.", "Dog sitting at v_0B.")
    assert first.captions1 == ("Man in red cap stand at v_1A.", "Dog stand at v_1B.")
    assert json.loads(first.provenance)["boundaries1"] == "v_1A,v_1B"
    for status in (" /1 ", "...", None):  # a boundary without words is still the neighbour of the next
        assert [pair.at0 for pair in twins(tmp_path, [THREE[0] | {"status_before": status}, *THREE[1:]])] == [3.0]


def test_several_files_are_planned_as_one(tmp_path: Path) -> None:
    second = [record | {"boundary_id": record["boundary_id"].replace("v", "a")} for record in THREE]
    val = saved(tmp_path / "val.json", {"v": THREE[:1]})
    train = saved(tmp_path / "train.json", {"v": THREE[1:], "a": second, "../x": THREE})
    split, whole = (
        opened("gebc", val, train),
        planned("gebc", saved(tmp_path / "whole.json", {"v": THREE, "a": second})),
    )
    assert list(split.plan()) == whole == planned("gebc", train, val)
    assert planned("gebc", val, train, val) == whole, "a boundary that two files have counts once"
    assert [pair.video for pair in whole] == ["a", "a", "v", "v"]
    assert split.excluded.examples == [("unsafe-path", "train.json video '../x'")]
    urls = opened("gebc", saved(tmp_path / "urls.json", {"--33Lscn_sk": THREE, "-v.1": []})).media_urls()
    assert urls == {"--33Lscn_sk": "https://www.youtube.com/watch?v=--33Lscn_sk"}


def segment(name: Any, start: Any, end: Any, sentence: Any = "chop it") -> dict[str, Any]:
    return {"id": name, "segment": [start, end], "sentence": sentence}


# Segments of videos
ROWS = [
    ("clip", 0, 0.8, "a man opens the door"),
    ("clip", 1.0, 1.4, 'he says "hello", and waves'),
    ("clip", 1.0, 1.4, "he waves"),
    ("clip", 1.6, 2.0, "a man opens the door"),
    ("clip", 0.2, 0.36, "he turns the handle"),
]
COLUMNS = ("video", "start", "end", "caption")


def test_every_two_segments_of_a_video_are_a_pair_of_their_middle_frames(tmp_path: Path) -> None:
    pl.DataFrame(ROWS, COLUMNS, strict=False, orient="row").write_csv(tmp_path / "segments.csv")
    source = opened("video-segments", tmp_path / "segments.csv")
    pairs = list(source.plan())
    middles = [(0.4, 1.2), (0.28, 1.2), (0.28, 1.8), (1.2, 1.8)]
    assert [(pair.at0, pair.at1) for pair in pairs] == middles and {pair.video for pair in pairs} == {"clip"}
    assert pairs[0].captions0 == ("A man opens the door.",)
    assert pairs[0].captions1 == ('He says "hello", and waves.', "He waves.")
    assert source.excluded == {"pair-said-alike": 1, "pair-overlaps": 1}
    make_video(tmp_path / "clip.mp4")
    shown = [(read(pair.image0.pixels), read(pair.image1.pixels)) for pair in source.make(pairs)]
    assert shown == [(round(at0 * RATE), round(at1 * RATE)) for at0, at1 in middles]


def test_the_recipe_of_the_docs_is_cited_as_it_says() -> None:
    page = (ROOT / "docs/frames.md").read_text("utf-8")
    (recipe,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    citations = citations_of(parse_recipe(yaml.safe_load(recipe)), "kitchen")
    assert "doe2026kitchen" in citations and "youcook" not in citations.lower()


# Records that can be used, and others with the reason why they cannot.
CLEAN: dict[str, list[Any]] = {
    "action-genome": story(HOLD, AWAY),
    "gebc": THREE,
    "youcook2": [segment(0, 8, 23), segment(1, 23, 47)],
    "video-segments": [dict(zip(COLUMNS, row, strict=True)) for row in ROWS[:2]],
}
UNUSABLE: dict[str, list[tuple[str, Any]]] = {
    "action-genome": [
        ("not-json", '{"frame": '),
        ("frame-malformed", {"frame": "A.mp4/zero.png", "objects": [thing("bag", *HOLD)]}),
        ("unsafe-path", {"frame": "../A.mp4/000030.png", "objects": []}),
        ("object-malformed", {"frame": "A.mp4/000040.png", "objects": [3, thing("bag", *AWAY, visible=False)]}),
        ("object-malformed", {"frame": "A.mp4/000070.png", "objects": [thing("bed", [], ["behind"], ["juggling"])]}),
    ],
    "gebc": [
        ("boundary-malformed", "not a boundary"),
        ("boundary-malformed", boundary("v_9B", float("nan"), 4.0)),
    ],
    "youcook2": [
        ("segment-malformed", segment(3, 9, 8)),
        ("segment-malformed", segment(4, 1e308, 1.7e308)),
        ("segment-malformed", "not a segment"),
    ],
    "video-segments": [
        ("unsafe-path", {"video": "../clip", "start": 0, "end": 1, "caption": "another folder"}),
        ("segment-malformed", {"video": "clip", "start": "soon", "end": 1, "caption": "no time"}),
        ("segment-malformed", {"video": "clip", "start": 3, "end": 4, "caption": " ... "}),
    ],
}


@pytest.mark.parametrize("kind", CLEAN)
def test_unusable_records_are_counted_with_reason_and_place_and_change_nothing_else(kind: str, tmp_path: Path) -> None:
    clean = planned(kind, written(kind, tmp_path, CLEAN[kind]))
    path = written(kind, tmp_path, CLEAN[kind] + [record for _, record in UNUSABLE[kind]])
    made = opened(kind, path)
    assert list(made.plan()) == clean != []
    where = {"gebc": "video 'v' boundary", "youcook2": "video 'v' segment"}.get(kind, "line")
    for number, (reason, _) in enumerate(UNUSABLE[kind], len(CLEAN[kind]) + 1):
        places = [place for given, place in made.excluded.examples if given == reason]
        assert any(re.match(rf"{path.name} {where} {number}\b", place) for place in places), (reason, places)
    assert sum(made.excluded.values()) == len(UNUSABLE[kind])


# Attack: annotations are a stranger's pickle, which runs no code, fills no memory and takes no time.


def pickled(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_data_is_read_as_the_standard_library_reads_it_and_code_does_not_run(tmp_path: Path, protocol: int) -> None:
    numbers = (1, -2.5, 10**30, True, None)
    plain = {"text": "caf\xe9", "numbers": numbers, "nested": {"a": [{"b": ()}], "box": (1, 2), "lone": ("x",)}}
    assert load(pickled(tmp_path / "annotation.pkl", plain, protocol)) == plain
    with pytest.raises(WrongUse, match=r"annotation\.pkl: this pickle holds more than plain data: .*fetch"):
        load(pickled(tmp_path / "annotation.pkl", {"a.mp4/000001.png": [os.system]}, protocol))


def doubled(depth: int, end: bytes) -> bytes:
    """A tuple of twice a tuple of twice ..., each recalled from the memo, and what is done with it."""
    return b"\x80\x02}" + b")" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(depth)) + end


NOT_DATA, BROKEN = "this pickle holds more than plain data", "broken pickle"
REFUSED: dict[str, tuple[str, Any]] = {
    "a set": (NOT_DATA, {1, 2}),
    "an object of a class": (NOT_DATA, b"(cos\nsystem\n(S'true'\nto."),
    "a key of doubled tuples, whose hash takes for ever": (NOT_DATA, doubled(40, b"Ns.")),
    "nine million parts in 20 kB": (NOT_DATA, [list(range(3000))] * 3000),
    "claimed text": (BROKEN, b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_but_data_is_refused_by_a_short_message(name: str, tmp_path: Path) -> None:
    problem, value = REFUSED[name]
    with pytest.raises(WrongUse, match=rf"annotation\.pkl: {problem}") as refused:
        load(pickled(tmp_path / "annotation.pkl", value))
    assert len(str(refused.value)) < 1000
