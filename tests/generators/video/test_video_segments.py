"""Segments of one's own videos, by the command of docs/frames.md, and of YouCook2's."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.generators.video.numbered_videos import RATE, make_video, read
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.source import SOURCES
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.generators.video.segments import VideoSegments, YouCook2
from twinset.shards.contracts import Context

ROOT = Path(__file__).parents[3]
ROWS: list[dict[str, Any]] = [
    {"video": "clip", "start": 0, "end": 0.8, "caption": "a man opens the door"},
    {"video": "clip", "start": 1.0, "end": 1.4, "caption": 'he says "hello", and waves'},
    {"video": "clip", "start": 1.0, "end": 1.4, "caption": "he waves"},
    {"video": "clip", "start": 1.6, "end": 2.0, "caption": "a man opens the door"},
    {"video": "lone", "start": 0, "end": 1, "caption": "nothing to pair it with"},
]


def written(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    pl.DataFrame(rows, strict=False).write_csv(path)
    return path


def source(path: Path, **settings: Any) -> VideoSegments:
    settings = {"kind": "video-segments", "annotations": path, "media": path.parent, **settings}
    opened: VideoSegments = VideoSegments.model_validate(settings).open(Context("own"))
    return opened


def test_every_two_segments_of_a_video_are_a_pair_of_their_middle_frames(tmp_path: Path) -> None:
    made = source(written(tmp_path / "segments.csv"))
    pairs = list(made.plan())
    assert [(pair.video, pair.at0, pair.at1) for pair in pairs] == [("clip", 0.4, 1.2), ("clip", 1.2, 1.8)]
    assert pairs[0].captions0 == ("A man opens the door.",)
    assert pairs[0].captions1 == ('He says "hello", and waves.', "He waves.")
    assert made.excluded == {"pair-said-alike": 1}
    make_video(tmp_path / "clip.mp4.webm", codec="libvpx")  # youtube-dl left two suffixes
    results = list(made.make(pairs))
    assert all(isinstance(result, Pair) for result in results)
    shown = [[read(pair.image0.pixels), read(pair.image1.pixels)] for pair in results if isinstance(pair, Pair)]
    assert shown == [[round(0.4 * RATE), round(1.2 * RATE)], [round(1.2 * RATE), round(1.8 * RATE)]]


def test_what_cannot_be_used_is_counted_with_its_reason(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"video": "", "start": 0, "end": 1, "caption": "no video"},
        {"video": "../clip", "start": 0, "end": 1, "caption": "another folder"},
        {"video": "clip", "start": "soon", "end": 1, "caption": "no time"},
        {"video": "clip", "start": 3, "end": 2, "caption": "backwards"},
        {"video": "clip", "start": 3, "end": 4, "caption": " ... "},
        {"video": "clip", "start": 0.2, "end": 0.4, "caption": "he turns the handle"},
    ]
    made = source(written(tmp_path / "segments.csv", ROWS + bad))
    assert len(list(made.plan())) == 4
    assert made.excluded == {
        **{"segment-without-video": 1, "unsafe-path": 1, "segment-without-time": 2, "segment-unsayable": 1},
        **{"pair-said-alike": 1, "pair-overlaps": 1},
    }
    assert ("segment-without-time", "segments.csv line 9") in made.excluded.examples


def test_the_command_of_the_docs_builds_a_dataset_with_its_own_citation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/frames.md").read_text("utf-8")
    (recipe,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^    twinset (build own\.yaml.*)$", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(recipe)
    written(Path("segments.csv"))
    Path("videos").mkdir()
    make_video(Path("videos/clip.mp4"))
    assert main(command.split()) == 0
    card = Path(command.split()[-1], "README.md").read_text("utf-8")
    assert "Kitchen videos of our group" in card and "doe2026kitchen" in card
    assert "YouCook" not in card and "Zhou" not in card


REAL = Path(__file__).parents[3] / "../shared/data/youcook2/youcookii_annotations_trainval.json"


def segment(name: Any, start: Any, end: Any, sentence: Any = "chop it") -> dict[str, Any]:
    return {"id": name, "segment": [start, end], "sentence": sentence}


def generator(path: Path) -> YouCook2:
    return YouCook2(kind="youcook2", annotations=path, media=path.parent).open(Context("eq-youcook2"))


def saved(folder: Path, videos: dict[str, Any]) -> Path:
    database = {
        name: {"duration": 99.0, "subset": "validation", "recipe_type": "113", "annotations": segments}
        for name, segments in videos.items()
    }
    path = folder / "annotations.json"
    path.write_text(json.dumps({"database": database}), "utf-8")
    return path


def planned(folder: Path, *segments: Any) -> list[FramePairCandidate]:
    return list(generator(saved(folder, {"-x.9": list(segments)})).plan())


def test_middle_frames_of_all_pairs_of_segments(tmp_path: Path) -> None:
    segments = segment(0, 8, 23, "crush garlic"), segment(1, 23, 47), segment(2, 50, 51, "serve it")
    pairs = planned(tmp_path, *segments)
    assert planned(tmp_path, *segments[::-1]) == pairs and planned(tmp_path, *segments[::2]) == pairs[1:2]
    assert [(pair.at0, pair.at1) for pair in pairs] == [(15.5, 35.0), (15.5, 50.5), (35.0, 50.5)]
    assert pairs[1].captions0 == ("Crush garlic.",)
    assert pairs[1].captions1 == ("Serve it.",)
    assert {(pair.video, pair.group, pair.split, pair.change) for pair in pairs} == {("-x.9", "-x.9", "test", "step")}


def test_unusable_segments_are_counted(tmp_path: Path) -> None:
    dirty: list[Any] = [
        segment(0, 0, 2),
        segment(0, 3, 4, "again"),
        segment(1, 9, 8),
        segment(3, 1, 2, " "),
        segment(None, 1, 2),
        "not a segment",
        {"id": 5, "sentence": "no time"},
        segment(6, "7", "9"),
        segment(7, 1e308, 1.7e308),
    ]
    made = generator(saved(tmp_path, {"v": dirty, "w": []}))
    (pair,) = made.plan()
    assert (pair.at0, pair.at1) == (1.0, 8.0)
    assert made.excluded.examples[0] == ("segment-repeated", "annotations.json video 'v' segment 2")
    assert made.excluded == {
        **{"segment-repeated": 1, "segment-without-time": 3, "segment-unsayable": 1, "segment-malformed": 2},
    }


@pytest.mark.slow
def test_the_real_annotation_has_53550_pairs() -> None:
    if not REAL.is_file():
        pytest.skip("YouCook2's annotation is not in ../shared/data/youcook2 on this machine")
    made = generator(REAL)
    pairs = list(made.plan())
    assert len(pairs) == len({pair.key for pair in pairs}) == 53_550
    assert made.excluded == {}
    assert len({pair.group for pair in pairs}) <= 1_790
    # Two segments of oJZUxU9szWA have one interval: planned as the paper counts, rejected when their frames are read.
    assert sum(pair.at0 == pair.at1 for pair in pairs) == 1


@pytest.mark.parametrize(
    ("kind", "annotation", "problem"),
    [
        ("gebc", "[]", "not a mapping of videos"),
        ("gebc", '{"v": {}}', "video 'v': video-malformed"),
        ("youcook2", "[]", "no mapping under 'database'"),
        ("video-segments", '[{"video": "a", "start": 0, "end": 1, "caption": "b"}]', "two segments of one video"),
    ],
)
def test_bad_files_say_where(kind: str, annotation: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "annotation.json"
    path.write_text(annotation, "utf-8")
    made = SOURCES.find(kind).model_validate({"kind": kind, "annotations": str(path), "media": str(tmp_path)})
    with pytest.raises(WrongUse, match=rf"annotation\.json.*{problem}"):
        list(made.open(Context("eq-test")).plan())  # type: ignore[attr-defined]
