"""Damaged videos: every frame that is given is the one that the whole file gives there; all others are refused."""

from pathlib import Path

import av
import pytest

from tests.generators.video.decoded_frames import digest
from tests.generators.video.numbered_videos import RATE, make_video, read
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.frames import VideoFrame, read_frames

COUNT, GOP = 200, 25
TIMES = [n / RATE for n in range(COUNT)]
X264 = {"bf": "3", "g": str(GOP)}
KINDS = {
    "mp4": ("a.mp4", "libx264", X264),
    "open-gop": ("a.mp4", "libx264", {"x264-params": f"open-gop=1:keyint={GOP}:min-keyint=12:bframes=3:scenecut=0"}),
    "gradual-refresh": ("a.mp4", "libx264", {"x264-params": f"intra-refresh=1:keyint={GOP}:bframes=0"}),
    "mkv": ("a.mkv", "libx264", X264),
    "webm-vp9": ("a.webm", "libvpx-vp9", {"g": str(GOP), "deadline": "realtime", "cpu-used": "8"}),
    "webm-vp8": ("a.webm", "libvpx", {"g": str(GOP), "cpu-used": "4"}),
    "avi": ("a.avi", "libx264", {"bf": "2", "g": str(GOP)}),
    "avi-mpeg4": ("a.avi", "mpeg4", {"bf": "2", "g": str(GOP), "b": "2M"}),
    "ts": ("a.ts", "libx264", X264),
}


def video(folder: Path, name: str) -> Path:
    file, codec, options = KINDS[name]
    return make_video(folder / file, count=COUNT, codec=codec, options=options)


def given(path: Path, times: list[float] = TIMES) -> dict[float, str]:
    """Digests of the frames at the times that have one; none is said to lie beyond the end."""
    found = read_frames(path, times, "seconds")
    refused = [frame for frame in found.values() if isinstance(frame, UnusableImage)]
    assert {frame.reason for frame in refused} <= {"broken-media"}
    return {at: digest(frame.pixels) for at, frame in found.items() if isinstance(frame, VideoFrame)}


def packets(path: Path) -> list[tuple[int, int, int, bool]]:
    """Shown number, byte position, size and whether it is a key frame, of every packet."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        found = [packet for packet in container.demux(stream) if packet.size]
        return [
            (round((packet.pts or 0) * stream.time_base * RATE), packet.pos, packet.size, packet.is_keyframe)
            for packet in found
        ]


def overwrite(path: Path, start: int, size: int, fill: bytes = b"\0") -> None:
    data = bytearray(path.read_bytes())
    data[start : start + size] = (fill * size)[:size]
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"noise, "])
@pytest.mark.parametrize("name", KINDS)
def test_no_frame_after_a_hole_is_garbled_or_of_another_time(name: str, fill: bytes, tmp_path: Path) -> None:
    path = video(tmp_path, name)
    times = [at for at in TIMES if at >= 0.08]  # H.264 in AVI comes up to two frames late
    whole = given(path, times)
    size = path.stat().st_size
    # From the start of a packet: of one that is damaged near its end a decoder may notice nothing.
    start = next(place for _, place, *_ in packets(path) if place > 0.4 * size)
    overwrite(path, start, size // 20, fill)
    left = given(path, times)
    assert left == {at: whole[at] for at in left}
    assert len(left) >= COUNT // 4 and left.keys() < whole.keys()
    if path.suffix != ".avi" and name != "gradual-refresh":  # those two have no way back in after a hole
        assert len(left) >= COUNT - 3 * GOP and times[-1] in left


def test_a_damaged_frame_costs_those_that_follow_up_to_the_next_key_frame(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", count=COUNT, options={"bf": "0", "g": str(GOP)})
    whole = given(path)
    _, place, size, key = packets(path)[2 * GOP + 5]
    assert not key
    overwrite(path, place + 20, size - 20, b"\xff")
    assert given(path) == {at: whole[at] for n, at in enumerate(TIMES) if not 2 * GOP + 5 <= n < 3 * GOP}


def test_a_damaged_frame_to_which_none_refers_costs_only_itself(tmp_path: Path) -> None:
    options = {"x264-params": f"bframes=3:b-adapt=0:b-pyramid=none:keyint={GOP}:scenecut=0"}
    path = make_video(tmp_path / "a.mp4", count=COUNT, options=options)
    whole = given(path)
    row = packets(path)  # in decoding order: what is shown before its predecessor is a B-frame
    shown, place, size, _ = next(one for n, one in enumerate(row) if n > 2 * GOP and one[0] < row[n - 1][0])
    overwrite(path, place + 20, size - 20, b"\xff")
    assert given(path) == {at: whole[at] for n, at in enumerate(TIMES) if n != shown}
    after = TIMES[shown + 6]
    assert given(path, [TIMES[shown], after]) == given(path, [after]) == {after: whole[after]}


def test_of_a_file_that_was_cut_off_the_last_frame_does_not_stand_for_later_ones(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", count=100, options={"g": "10", "bf": "0"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found = read_frames(path, TIMES[:100], "seconds")
    frames = [read(frame.pixels) for frame in found.values() if isinstance(frame, VideoFrame)]
    assert frames == list(range(len(frames))) and 30 < len(frames) < 70


def test_numbers_within_a_hole_are_refused(tmp_path: Path) -> None:
    path = video(tmp_path, "mkv")
    size = path.stat().st_size
    overwrite(path, int(0.4 * size), size // 20)
    found = read_frames(path, [float(n + 1) for n in range(COUNT)], "numbers")
    frames = {at: read(frame.pixels) for at, frame in found.items() if isinstance(frame, VideoFrame)}
    assert frames == {at: int(at) - 1 for at in frames}
    assert COUNT - 3 * GOP < len(frames) < COUNT


@pytest.mark.parametrize(("file", "first"), [("a.mkv", 8005), ("a.mp4", 8005), ("a.avi", 0), ("a.ts", 8005)])
def test_a_time_past_the_end_of_a_whole_file_is_beyond_the_end(file: str, first: int, tmp_path: Path) -> None:
    ticks = [first + 40 * n for n in range(100)]  # in ms: AVI fills the time between frames with empty packets
    path = make_video(tmp_path / file, count=100, ticks=ticks, options={"bf": "2"})
    found = read_frames(path, [3.0, 6.0], "seconds")
    assert isinstance(found[3.0], VideoFrame)
    assert isinstance(late := found[6.0], UnusableImage) and late.reason == "beyond-end", late
