import json
import pickle
from collections.abc import Iterable
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.video.numbered_videos import make_video, read
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.generators.video.action_genome import SPELLED, ActionGenome
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.shards.contracts import Context

KINDS = ("attention_relationship", "spatial_relationship", "contacting_relationship")
SPATIAL = ("in_front_of", "behind", "on_the_side_of", "above")
CONTACTING = ("holding", "touching", "not_contacting", "other_relationship")
DATA = Path(__file__).parents[3] / "../shared/data/action_genome"
Frames = dict[str, list[dict[str, Any]]]


def thing(name: str, attention: Any, spatial: Any, contacting: Any, **more: Any) -> dict[str, Any]:
    return {"class": name, **dict(zip(KINDS, (attention, spatial, contacting), strict=True)), **more}


def saved(folder: Path, frames: Frames) -> Path:
    path = folder / "graphs.jsonl"
    path.write_text("".join(json.dumps({"frame": k, "objects": v}) + "\n" for k, v in frames.items()), "utf-8")
    return path


def generator(path: Path, skip: int = 1, exclusive: bool = False) -> ActionGenome:
    source = ActionGenome(kind="action-genome", annotations=path, media=path.parent, skip=skip, exclusive=exclusive)
    return source.open(Context("eq-ag"))


def planned(path: Path, skip: int = 1, exclusive: bool = False) -> list[FramePairCandidate]:
    return list(generator(path, skip, exclusive).plan())


def story(*relations: tuple[Any, Any, Any], name: str = "bag", video: str = "A.mp4") -> Frames:
    return {f"{video}/{10 * i:06d}.png": [thing(name, *three)] for i, three in enumerate(relations, 1)}


HOLD = (["looking_at"], ["in_front_of"], ["holding"])
AWAY = (["not_looking_at"], ["behind"], ["not_contacting"])


def said(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Contact and place of every caption of an object."""
    pairs = product(one[KINDS[2]] or [], one[KINDS[1]] or [])
    return [pair for pair in pairs if not {"other_relationship", "unsure"} & set(pair)]


def oracle(frames: Frames, skip: int, exclusive: bool = False) -> set[tuple[str, str, int, int]]:
    """The issue's loop, written down again: 1-based, from the file's own lists, without the generator's parts."""
    tracks: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for frame, objects in frames.items():
        video, name = frame.split("/")
        for one in objects:
            if one.get("visible", True):
                tracks.setdefault((video, one["class"].replace("_", "")), []).append((int(name[:-4]), one))
    emitted = set()
    for (video, name), track in tracks.items():
        f = [(0, {}), *sorted(track, key=lambda entry: entry[0])]
        n = len(track)
        i = 1
        while i <= n:
            chosen = False
            j = i + 1
            while j <= n:
                (number0, one0), (number1, one1) = f[i], f[j]
                differing = sum(set(one0[kind] or ()) != set(one1[kind] or ()) for kind in KINDS)
                mine, theirs = set(said(one0)), set(said(one1))
                differ = mine - theirs and theirs - mine if exclusive else mine and theirs and mine != theirs
                if differing >= 2 and differ:
                    emitted.add((video, name, number0, number1))
                    chosen = True
                    j += 1 + skip
                else:
                    j += 1
            i += 1 + skip if chosen else 1
    return emitted


def identities(pairs: Iterable[FramePairCandidate]) -> set[tuple[str, str, int, int]]:
    return {(pair.video, json.loads(pair.provenance)["object"], int(pair.at0), int(pair.at1)) for pair in pairs}


@pytest.mark.parametrize(
    ("object_class", "spatial", "contacting", "caption"),
    [  # the published examples (EqBen, Figure 16)
        ("dish", "in_front_of", "holding", "The person is holding the dish which is in front of him/her."),
        ("clothes", "in_front_of", "holding", "The person is holding the clothes which is in front of him/her."),
        ("cup_glass_bottle", "in_front_of", "drinking_from",
         "The person is drinking from the bottle which is in front of him/her."),
        ("sofa/couch", "beneath", "lying_on", "The person is lying on the sofa which is beneath him/her."),
    ],
)  # fmt: skip
def test_captions_are_worded_as_published(
    object_class: str, spatial: str, contacting: str, caption: str, tmp_path: Path
) -> None:
    relations = (["unsure"], [spatial], [contacting]), AWAY
    (pair,) = planned(saved(tmp_path, story(*relations, name=object_class)))
    assert pair.captions0 == (caption,)
    assert (pair.video, pair.group, pair.at0, pair.at1) == ("A.mp4", "A.mp4", 10.0, 20.0)
    assert (pair.change, pair.split) == ("relation", "test")


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


@pytest.mark.parametrize("contacting", [None, ["other_relationship"]])
def test_what_cannot_be_said_makes_no_pair_and_is_counted(tmp_path: Path, contacting: Any) -> None:
    made = generator(saved(tmp_path, story(HOLD, (["unsure"], ["behind"], contacting))))
    assert list(made.plan()) == []
    assert made.excluded == {"pair-unsayable": 1}


def test_unusable_frames_and_objects_are_counted(tmp_path: Path) -> None:
    frames = story(HOLD, AWAY)
    frames["A.mp4/000020.png"] += [thing("bag", *HOLD), thing("dish", *HOLD, visible=False)]
    frames["A.mp4/zero.png"] = frames["A.mp4/20.png"] = [thing("bag", *HOLD)]
    frames["A.mp4/000030.png"] = [thing("dish", ["looking_at"], ["behind"], ["juggling"])]
    path = saved(tmp_path, frames)
    dirty = [
        b'{"frame": ',
        b'{"frame": 3, "objects": []}',
        b'{"frame": "../A.mp4/000030.png", "objects": []}',
        b'{"frame": "A.mp4/000040.png", "objects": [{"clazz": "bag"}, 3]}',
        json.dumps({"frame": "A.mp4/000050.png", "objects": [thing("bag", "looking_at", [], [])]}).encode(),
    ]
    path.write_bytes(path.read_bytes() + b"\n".join(dirty))
    made = generator(path)
    assert identities(made.plan()) == {("A.mp4", "bag", 10, 20)}
    reasons = ["repeated-object", "frame-name", "repeated-frame", "unknown-relation"]
    assert [reason for reason, _ in made.excluded.examples[:4]] == reasons
    reasons = ["not-json", "frame-malformed", "unsafe-path", *["object-malformed"] * 3]
    places = [f"graphs.jsonl line {number}" for number in (6, 7, 8, 9, 9, 10)]
    assert made.excluded.examples[4:] == list(zip(reasons, places, strict=True))


def test_numbers_of_frames_count_from_one(tmp_path: Path) -> None:
    make_video(tmp_path / "A.mp4", count=30)
    made = generator(saved(tmp_path, story(HOLD, AWAY)))
    (pair,) = made.make(list(made.plan()))
    assert isinstance(pair, Pair) and (read(pair.image0.pixels), read(pair.image1.pixels)) == (9, 19)


def test_a_pickle_plans_the_same_as_json_lines(tmp_path: Path) -> None:
    frames = story(HOLD, AWAY, HOLD, AWAY, name="cup_glass_bottle")
    (tmp_path / "frames.pkl").write_bytes(pickle.dumps(frames, 2))
    assert planned(tmp_path / "frames.pkl") == planned(saved(tmp_path, frames)) != []
    (tmp_path / "list.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(WrongUse, match=r"list\.pkl.* holds a list, not frames by name"):
        planned(tmp_path / "list.pkl")


def test_the_loop_is_the_published_one_whatever_the_order_of_the_file(tmp_path: Path) -> None:
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
        for skip in (0, 1, 2):
            pairs = planned(saved(tmp_path, frames), skip)
            assert identities(pairs) == oracle(frames, skip)
            assert planned(saved(tmp_path, dict(sorted(frames.items()))), skip) == pairs
            assert len(pairs) == len({pair.key for pair in pairs})
            compared += len(pairs)
    assert compared > 1000


@pytest.fixture(scope="module")
def real() -> Path:
    path = DATA / "ag_scene_graphs.jsonl"
    if not path.is_file():
        pytest.skip("Action Genome's scene graphs are not in ../shared/data/action_genome on this machine")
    return path


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
        assert pair.captions0[0].startswith("The person is ") and pair.captions0[0].endswith(" him/her.")
    groups = [group for group, _ in groupby(pair.group for pair in pairs)]
    assert len(groups) == len(set(groups)), "candidates of one video lie together"
    assert "unknown-relation" not in made.excluded


def test_vocabulary_covers_the_official_list(real: Path) -> None:
    assert sorted((DATA / "relationship_classes.txt").read_text("utf-8").split()) == sorted(SPELLED)
