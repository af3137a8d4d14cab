import json
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.kinds.samples import Drop
from twinset.filters.captions import EqualCaptions, MotionWords
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.generators.video.gebc import Gebc
from twinset.shards.contracts import Context

REAL = Path(__file__).parents[3] / "../shared/data/gebc/val.json"


def boundary(name: str, previous: Any, time: Any, following: Any, **more: Any) -> dict[str, Any]:
    return {
        "boundary_id": name,
        "timestamp": time,
        "prev_timestamp": previous,
        "next_timestamp": following,
        "subject": "man in red cap",
        "status_before": f"sitting at {name}",
        "status_after": f"stand at {name}",
        **more,
    }


THREE = [boundary("v_0A", 0, 2.0, 4.0), boundary("v_1A", 2.0, 4.0, 8.0), boundary("v_2A", 4.0, 8.0, 10.0)]


def generator(path: Path, *more: Path, **settings: Any) -> Gebc:
    return Gebc(kind="gebc", annotations=(path, *more), media=path.parent, **settings).open(Context("eq-gebc"))


def saved(folder: Path, value: Any, name: str = "val.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value), "utf-8")
    return path


def planned(folder: Path, boundaries: list[Any], **settings: Any) -> list[FramePairCandidate]:
    return list(generator(saved(folder, {"-v.1": boundaries}), **settings).plan())


def test_twins_lie_before_a_boundary_and_after_the_next(tmp_path: Path) -> None:
    first, second = planned(tmp_path, THREE)
    assert (first.at0, first.at1) == (1.0, 6.0)
    assert (second.at0, second.at1) == (3.0, 9.0)
    assert first.captions0 == ("Man in red cap sitting at v_0A.",)
    assert first.captions1 == ("Man in red cap stand at v_1A.",)
    assert (first.video, first.group, first.split, first.change) == ("-v.1", "-v.1", "test", "status")


def test_skip_counts_the_boundaries_between_the_twins_and_offsets_move_within_the_intervals(tmp_path: Path) -> None:
    for skip, times in ((0, [(1, 3), (3, 6), (6, 9)]), (2, [(1, 9)]), (3, [])):
        assert [(pair.at0, pair.at1) for pair in planned(tmp_path, THREE, skip=skip)] == times
    (pair,) = planned(tmp_path, THREE, skip=2, before=0.25, after=1.0)
    assert (pair.at0, pair.at1) == (0.5, 10.0)


def test_captions_of_one_moment_are_no_neighbours(tmp_path: Path) -> None:
    more = [boundary("v_0B", 0, 2.0, 4.0, subject="dog"), boundary("v_1B", 2.0, 4.0, 8.0, subject="dog")]
    flag = boundary("v_0C", 0, 2.0, 4.0, status_before="/0", status_after="/1")
    first, second = planned(tmp_path, [*THREE[:1], more[0], flag, *THREE[1:], more[1]])
    assert (first.at0, first.at1) == (1.0, 6.0)
    assert first.captions0 == ("Man in red cap sitting at v_0A.", "Dog sitting at v_0B.")
    assert first.captions1 == ("Man in red cap stand at v_1A.", "Dog stand at v_1B.")
    assert json.loads(first.provenance)["boundaries1"] == "v_1A,v_1B"
    assert second.captions1 == ("Man in red cap stand at v_2A.",)


@pytest.mark.parametrize("status", [" /1 ", "...", None])
def test_a_status_without_words_is_no_caption(tmp_path: Path, status: Any) -> None:
    made = generator(saved(tmp_path, {"v": [THREE[0] | {"status_before": status}, *THREE[1:]]}))
    (pair,) = made.plan()
    assert pair.at0 == 3.0, "the boundary is still the neighbour of the next"
    assert made.excluded == {"pair-unsayable": 1}


def test_order_and_form_of_the_file_do_not_matter(tmp_path: Path) -> None:
    clean = planned(tmp_path, THREE)
    assert planned(tmp_path, THREE[::-1]) == clean
    assert planned(tmp_path, [one | {"timestamp": str(one["timestamp"])} for one in THREE]) == clean
    # Where a record lacks its neighbours, or has them too far away or on the wrong side, the other boundaries tell.
    for previous, following in ((None, None), (0, 10.0), ("soon", "late"), (99, -1), (8.0, 0)):
        broken = THREE[1] | {"prev_timestamp": previous, "next_timestamp": following}
        assert planned(tmp_path, [THREE[0], broken, THREE[2]]) == clean


def test_several_files_are_planned_as_one(tmp_path: Path) -> None:
    other = [one | {"boundary_id": one["boundary_id"].replace("v", "a")} for one in THREE]
    val, train = saved(tmp_path, {"v": THREE[:1]}), saved(tmp_path, {"v": THREE[1:], "a": other, "b": 3}, "train.json")
    both, whole = generator(val, train), generator(saved(tmp_path, {"v": THREE, "a": other}, "whole.json"))
    assert list(both.plan()) == list(whole.plan()) == list(generator(train, val).plan())
    assert list(generator(val, train, val).plan()) == list(whole.plan()), "a boundary that two files have counts once"
    assert [pair.video for pair in whole.plan()] == ["a", "a", "v", "v"]
    assert both.excluded.examples == [("video-malformed", "train.json video 'b'")]
    (kinetics,) = generator(saved(tmp_path, {"--33Lscn_sk": THREE, "-v.1": []}, "urls.json")).media_urls().items()
    assert kinetics == ("--33Lscn_sk", "https://www.youtube.com/watch?v=--33Lscn_sk")
    # One file has the digest that it had when there could be no other, so that datasets stay valid.
    assert generator(val).inputs() == sha256_of_file(val)[0]
    assert len({generator(*files).inputs() for files in ((val,), (train,), (val, train))}) == 3


def test_unusable_boundaries_are_counted(tmp_path: Path) -> None:
    dirty = [
        "not a boundary",
        boundary("v_9A", 0, "soon", 4.0),
        boundary("v_9B", 0, float("nan"), 4.0),
        THREE[0],
        THREE[0] | {"status_before": "again"},
        {key: value for key, value in THREE[1].items() if key != "boundary_id"},
        THREE[2] | {"next_timestamp": 8.0},
    ]
    made = generator(saved(tmp_path, {"v": dirty, "w": {}, "../x": THREE}))
    (pair,) = made.plan()
    assert made.excluded.examples[:2] == [
        ("unsafe-path", "val.json video '../x'"),
        ("video-malformed", "val.json video 'w'"),
    ]
    assert pair.captions0 == ("Man in red cap sitting at v_0A.",)
    assert json.loads(pair.provenance)["boundaries1"] == ""
    assert made.excluded == {
        **{"unsafe-path": 1, "video-malformed": 1, "pair-without-interval": 1},
        **{"boundary-malformed": 1, "boundary-without-time": 2, "boundary-repeated": 1},
    }


@pytest.mark.parametrize(("skip", "count", "left"), [(0, 5930, 2254), (1, 3927, 1429), (2, 2413, 850)])
def test_the_real_annotation_gives_the_counts_in_the_readme(skip: int, count: int, left: int) -> None:
    if not REAL.is_file():
        pytest.skip("GEBC's val.json is not in ../shared/data/gebc on this machine")
    made = generator(REAL, skip=skip)
    pairs = list(made.plan())
    assert len(pairs) == len({pair.key for pair in pairs}) == count
    assert set(made.excluded) == {"pair-unsayable"}
    moments = json.loads(REAL.read_text("utf-8")).values()
    distinct = (len({one["timestamp"] for one in boundaries}) for boundaries in moments)
    assert count + made.excluded["pair-unsayable"] == sum(max(0, n - skip) for n in distinct)
    motion, equal = MotionWords(kind="motion-words").open(), EqualCaptions(kind="equal-captions").open()
    kept = 0
    for pair in pairs:
        assert 0 <= pair.at0 < pair.at1
        for caption in pair.captions0 + pair.captions1:
            assert caption == " ".join(caption.split()) and "/" not in caption and " ," not in caption
            assert caption[0].isupper() and caption.endswith(".") and not caption.endswith("..")
        still = motion.judge(pair)
        kept += not isinstance(still, Drop) and not isinstance(equal.judge(still), Drop)
    assert kept == left
