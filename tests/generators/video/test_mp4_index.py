"""The index of an MP4 file tells what reading all its packets tells, or is not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.video.container import video_file
from generators.video.container.mp4_index import indexed_packets
from generators.video.container.packets import PacketTable
from generators.video.container.video_file import VideoFile
from tests.generators.video.numbered_videos import make_video

CLIPS = Path(__file__).parents[3] / "../shared/data/videos"


def indexed(path: Path) -> PacketTable | None:
    with VideoFile(path) as file:
        return indexed_packets(path, file.stream, next(file.packets())[1].pts or 0)


def read_through(path: Path, monkeypatch: pytest.MonkeyPatch) -> PacketTable:
    monkeypatch.setattr(video_file, "PROBED", -1)
    with VideoFile(path) as file:
        return file.scan()


def assert_equal(table: PacketTable, other: PacketTable) -> None:
    for column in ("pts", "dts", "keys", "shown"):
        assert list(getattr(table, column)) == list(getattr(other, column)), column
    assert list(table.durations[:-1]) == list(other.durations[:-1])
    assert (table.damaged, table.truncated) == (other.damaged, other.truncated) == (frozenset(), False)


@pytest.mark.parametrize("name", ["a.mp4", "a.mov"])
@pytest.mark.parametrize("ticks", [None, [40 * n + 7 * (n % 3) + 300 * (n > 50) for n in range(150)]])
def test_the_index_lists_what_reading_all_packets_gives(
    name: str, ticks: list[int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_video(tmp_path / name, count=150, ticks=ticks, options={"bf": "3", "g": "30"})
    table = indexed(path)
    assert table is not None
    assert_equal(table, read_through(path, monkeypatch))


def test_frames_in_decoding_order_are_read_through(tmp_path: Path) -> None:
    assert indexed(make_video(tmp_path / "a.mp4", options={"bf": "0"})) is None


def test_an_index_of_samples_that_are_missing_is_not_used(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", options={"bf": "2"})
    assert indexed(path) is not None
    data = bytearray(path.read_bytes())
    place = data.rindex(b"stco") + 12  # where the samples start, the index standing at the file's end
    data[place : place + 4] = len(data).to_bytes(4, "big")
    path.write_bytes(data)
    with VideoFile(path) as file:
        assert indexed_packets(path, file.stream, 0) is None


def test_an_index_that_contradicts_the_packets_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_video(tmp_path / "a.mp4", count=100, options={"bf": "2"})
    expected = read_through(path, monkeypatch)
    wrong = PacketTable(expected.pts[::-1], expected.dts, expected.durations, expected.keys, expected.shown)
    monkeypatch.setattr(video_file, "PROBED", 64)
    monkeypatch.setattr(video_file, "indexed_packets", lambda *_: wrong)
    with VideoFile(path) as file:
        assert file.scan() == expected


@pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")
def test_indexes_of_real_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    used = 0
    for path in sorted(CLIPS.glob("*.mp4")):
        table = indexed(path)
        if table is not None:
            assert_equal(table, read_through(path, monkeypatch))
            used += 1
    assert used >= 8
