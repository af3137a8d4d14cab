"""Segments of one's own videos, by the command of docs/frames.md."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.video.numbered_videos import RATE, make_video, read
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.generators.video.segments import VideoSegments
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
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        quoted = [['"' + str(value).replace('"', '""') + '"' for value in row.values()] for row in rows]
        path.write_text("\n".join(map(mark.join, [list(rows[0]), *quoted])) + "\n")
    return path


def source(path: Path, **settings: Any) -> VideoSegments:
    settings = {"kind": "video-segments", "annotations": path, "media": path.parent, **settings}
    opened: VideoSegments = VideoSegments.model_validate(settings).open(Context("own"))
    return opened


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_every_two_segments_of_a_video_are_a_pair_of_their_middle_frames(tmp_path: Path, suffix: str) -> None:
    made = source(written(tmp_path / f"segments{suffix}"))
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


def test_a_file_without_a_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"lone\.csv: nothing in it can be used .*two segments of one video"):
        list(source(written(tmp_path / "lone.csv", ROWS[-1:])).plan())
    with pytest.raises(WrongUse, match=r"no column 'start' .*source\.fields"):
        list(source(written(tmp_path / "other.csv", [{"video": "a", "from": 0, "to": 1, "caption": "b"}])).plan())


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
