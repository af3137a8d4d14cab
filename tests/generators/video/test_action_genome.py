import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.video.drawn_graphs import (
    AWAY,
    CONTACTING,
    HOLD,
    KINDS,
    SPATIAL,
    Frames,
    generator,
    identities,
    oracle,
    planned,
    said,
    saved,
    story,
    thing,
)
from twinset.contracts.errors import WrongUse
from twinset.generators.video.action_genome import ActionGenome
from twinset.shards.contracts import Context

REAL = Path(__file__).parents[3] / "../shared/data/action_genome/ag_scene_graphs.jsonl"


def test_grammar_is_a_setting(tmp_path: Path) -> None:
    path = saved(tmp_path, story(HOLD, AWAY, name="clothes"))
    source = ActionGenome(kind="action-genome", annotations=path, media=tmp_path, grammar=True)
    (pair,) = source.open(Context("ag")).plan()
    assert pair.captions0 == ("The person is holding the clothes which are in front of him/her.",)
    assert planned(path)[0].captions0 == ("The person is holding the clothes which is in front of him/her.",)


def test_a_pair_says_what_changed(tmp_path: Path) -> None:
    (pair,) = planned(saved(tmp_path, story(HOLD, AWAY, name="cup_glass_bottle")))
    assert pair.captions0 == ("The person is holding the bottle which is in front of him/her.",)
    assert pair.captions1 == ("The person is not contacting the bottle which is behind him/her.",)
    assert (pair.video, pair.group, pair.at0, pair.at1) == ("A.mp4", "A.mp4", 10.0, 20.0)
    assert (pair.change, pair.split) == ("relation", "test")
    assert json.loads(pair.provenance) == {
        "video": "A.mp4",
        "object": "cupglassbottle",
        "frame0": "A.mp4/000010.png",
        "frame1": "A.mp4/000020.png",
        "attention_relationship0": "looking_at",
        "attention_relationship1": "not_looking_at",
        "spatial_relationship0": "in_front_of",
        "spatial_relationship1": "behind",
        "contacting_relationship0": "holding",
        "contacting_relationship1": "not_contacting",
    }


def test_one_differing_relation_is_not_enough(tmp_path: Path) -> None:
    assert planned(saved(tmp_path, story(HOLD, (HOLD[0], ["behind"], HOLD[2])))) == []


@pytest.mark.parametrize(("skip", "numbers"), [(0, [20, 30, 40, 50]), (1, [20, 40]), (2, [20, 50])])
def test_frames_after_a_chosen_one_are_skipped(tmp_path: Path, skip: int, numbers: list[int]) -> None:
    pairs = planned(saved(tmp_path, story(HOLD, AWAY, AWAY, AWAY, AWAY)), skip)
    assert [pair.at1 for pair in pairs if pair.at0 == 10] == numbers


def test_the_lead_is_taken_by_captions_that_the_other_frame_lacks(tmp_path: Path) -> None:
    both = story((["looking_at"], ["behind"], ["holding", "touching"]), (["unsure"], ["behind"], ["holding", "wiping"]))
    (pair,) = planned(saved(tmp_path, both))
    assert [caption.split()[3] for caption in pair.captions0] == ["touching", "holding"]
    assert [caption.split()[3] for caption in pair.captions1] == ["wiping", "holding"]


def test_a_caption_that_holds_for_both_frames_makes_a_pair_unless_captions_must_be_exclusive(tmp_path: Path) -> None:
    path = saved(tmp_path, story(HOLD, (["unsure"], ["in_front_of"], ["holding", "touching"])))
    (pair,) = planned(path)
    assert [pair.captions0[0].split()[3], pair.captions1[0].split()[3]] == ["holding", "touching"]
    made = generator(path, exclusive=True)
    assert list(made.plan()) == []
    assert made.excluded == {"pair-said-alike": 1}


def test_frames_with_the_same_captions_make_no_pair(tmp_path: Path) -> None:
    other = (["unsure"], ["in_front_of"], ["holding", "other_relationship"])
    made = generator(saved(tmp_path, story(HOLD, other)))
    assert list(made.plan()) == []
    assert made.excluded == {"pair-said-alike": 1}


@pytest.mark.parametrize("contacting", [None, [], ["other_relationship"], ["unsure"]])
def test_what_cannot_be_said_makes_no_pair_and_is_counted(tmp_path: Path, contacting: Any) -> None:
    made = generator(saved(tmp_path, story(HOLD, (["unsure"], ["behind"], contacting))))
    assert list(made.plan()) == []
    assert made.excluded == {"pair-unsayable": 1}


def test_frames_are_taken_in_time_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    frames = {**story(HOLD, AWAY, HOLD, AWAY), **story(AWAY, HOLD, AWAY, video="B.mp4", name="dish")}
    straight = planned(saved(tmp_path, frames))
    shuffled = [list(frames.items())[i] for i in np.random.default_rng(0).permutation(len(frames))]
    assert planned(saved(tmp_path, dict(shuffled))) == straight
    assert [pair.group for pair in straight] == sorted(pair.group for pair in straight)
    assert len({pair.key for pair in straight}) == len(straight) == 4


def test_unusable_frames_and_objects_are_counted(tmp_path: Path) -> None:
    frames = story(HOLD, AWAY)
    frames["A.mp4/000020.png"] += [thing("bag", *HOLD), thing("dish", *HOLD, visible=False)]
    frames["A.mp4/zero.png"] = frames["A.mp4/000000.png"] = [thing("bag", *HOLD)]
    frames["A.mp4/20.png"] = [thing("bag", *HOLD)]
    frames["A.mp4/000030.png"] = [thing("dish", ["looking_at"], ["behind"], ["juggling"])]
    made = generator(saved(tmp_path, frames))
    assert identities(made.plan()) == {("A.mp4", "bag", 10, 20)}
    assert made.excluded == {"repeated-object": 1, "frame-name": 2, "repeated-frame": 1, "unknown-relation": 1}


def official(frames: Frames) -> dict[str, list[dict[str, Any]]]:
    """The structure of object_bbox_and_relationship.pkl: boxes, tags, invisible objects without relations."""
    whole: dict[str, list[dict[str, Any]]] = {}
    for frame, objects in frames.items():
        whole[frame] = [
            {
                **one,
                "class": {"cup_glass_bottle": "cup/glass/bottle", "sofa_couch": "sofa/couch"}.get(
                    one["class"], one["class"]
                ),
                "bbox": (1.5, 2.5, 30.0, 40.0),
                "visible": True,
                "metadata": {"tag": f"{frame}/{one['class']}", "set": "train"},
            }
            for one in objects
        ]
        whole[frame].append({**thing("light", None, None, None), "bbox": None, "visible": False, "metadata": {}})
    return whole


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_official_pickle_plans_the_same_as_json_lines(tmp_path: Path, protocol: int) -> None:
    frames = {
        **story(HOLD, AWAY, HOLD, AWAY, name="cup_glass_bottle"),
        **story(AWAY, HOLD, video="B.mp4", name="sofa_couch"),
    }
    path = tmp_path / "object_bbox_and_relationship.pkl"
    path.write_bytes(pickle.dumps(official(frames), protocol))
    assert planned(path) == planned(saved(tmp_path, frames)) != []


def test_the_loop_is_the_published_one(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)

    def some(names: tuple[str, ...]) -> list[str]:
        return [str(name) for name in draw.choice(names, size=draw.integers(0, 3), replace=False)]

    compared = 0
    for _ in range(150):
        frames: Frames = {}
        for number in draw.choice(40, size=draw.integers(2, 12), replace=False) + 1:
            names = [name for name in ("bag", "sofa_couch") if draw.random() < 0.8]
            frames[f"A.mp4/{number:06d}.png"] = [
                thing(name, some(("looking_at", "not_looking_at")), some(SPATIAL) or None, some(CONTACTING),
                      visible=bool(draw.random() < 0.9))
                for name in names
            ]  # fmt: skip
        path = saved(tmp_path, frames)
        for skip in (0, 1, 2):
            pairs = planned(path, skip)
            assert identities(pairs) == oracle(frames, skip)
            assert len(pairs) == len({pair.key for pair in pairs})
            compared += len(pairs)
    assert compared > 1000


def wrong(path: Path) -> str:
    with pytest.raises(WrongUse) as raised:
        planned(path)
    return str(raised.value)


def test_one_bad_line_does_not_stop_the_plan(tmp_path: Path) -> None:
    path = saved(tmp_path, story(HOLD, AWAY))
    clean = planned(path)
    dirty = [
        b'{"frame": "A.mp4/000030.png", "objects": [{"class": "caf\xe9"}]}',
        b'{"frame": ',
        b'{"frame": "a", "frame": "b", "objects": []}',
        b'{"frame": 3, "objects": []}',
        b'["A.mp4/000030.png"]',
        b'{"frame": "../A.mp4/000030.png", "objects": []}',
        b'{"frame": "A.mp4/000040.png", "objects": [{"clazz": "bag"}, 3]}',
        json.dumps({"frame": "A.mp4/000050.png", "objects": [thing("bag", "looking_at", [], [])]}).encode(),
    ]
    path.write_bytes(path.read_bytes() + b"\n".join(dirty))
    made = generator(path)
    assert list(made.plan()) == clean != []
    reasons = ["not-utf-8", "not-json", "repeated-key", "frame-malformed", "frame-malformed", "unsafe-path"]
    places = [f"graphs.jsonl line {number}" for number in (3, 4, 5, 6, 7, 8, 9, 9, 10)]
    assert made.excluded.examples == list(zip([*reasons, *["object-malformed"] * 3], places, strict=True))


def test_bad_files_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"
    path.write_text("not json\n")
    assert "not one line is JSON (line 1: not-json)" in wrong(path)
    assert "cannot be read" in wrong(tmp_path / "none.jsonl")
    as_pickle = tmp_path / "graphs.pkl"
    as_pickle.write_bytes(pickle.dumps([1]))
    assert "holds a list, not frames by name" in wrong(as_pickle)
    as_pickle.write_bytes(pickle.dumps({"A.mp4/000001.png": print}))
    assert "this pickle holds more than plain data" in wrong(as_pickle)
    as_pickle.rename(path)
    assert "more than plain data" in wrong(path), "a pickle under another name is still read as a pickle"


@pytest.fixture(scope="module")
def real() -> Path:
    if not REAL.is_file():
        pytest.skip("Action Genome's scene graphs are not in ../shared/data/action_genome on this machine")
    return REAL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skip", "exclusive", "count"), [(0, False, 4510), (1, False, 2788), (2, False, 2409), (1, True, 2392)]
)
def test_the_real_graphs_give_the_counts_in_the_readme(real: Path, skip: int, exclusive: bool, count: int) -> None:
    made = generator(real, skip, exclusive)
    pairs = list(made.plan())
    assert len(pairs) == len({pair.key for pair in pairs}) == count
    frames = {line["frame"]: line["objects"] for line in map(json.loads, real.read_text("utf-8").splitlines())}
    assert identities(pairs) == oracle(frames, skip, exclusive)
    for pair in pairs:
        assert pair.captions0[0] != pair.captions1[0]
        if exclusive:
            assert pair.captions0[0] not in pair.captions1
            assert pair.captions1[0] not in pair.captions0
        assert pair.captions0[0].startswith("The person is ") and pair.captions0[0].endswith(" him/her.")
    closed: set[str] = set()
    for before, after in pairwise(pairs):
        if before.group != after.group:
            closed.add(before.group)
        assert after.group not in closed, "candidates of one video lie together"


def test_the_real_graphs_hold_the_traps_that_were_measured(real: Path) -> None:
    """4,764 pairs differ in two relations; 253 of them have a slot that cannot be said; 523 equal first captions."""
    made = generator(real, skip=0)
    raw = equal = unsayable = 0
    for tracks in made._views().values():
        for track in tracks.values():
            track.sort(key=lambda view: view.number)
            for i, first in enumerate(track):
                for second in track[i + 1 :]:
                    if not first.differs_from(second):
                        continue
                    raw += 1
                    sides = [dict(zip(KINDS, view.relations, strict=True)) for view in (first, second)]
                    unsayable += not all(map(said, sides))
                    equal += all(sides[0][kind][:1] == sides[1][kind][:1] for kind in KINDS[1:])
    assert (raw, unsayable, equal) == (4764, 253, 523)
