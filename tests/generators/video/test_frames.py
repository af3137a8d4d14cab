"""Frames by time and by number: exact on every odd kind of video, whatever else is asked for; and pairs of them."""

import errno
import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import av
import numpy as np
import pytest
from av.stream import Disposition

from tests.generators.video.numbered_videos import RATE, WIDTH, make_video, read
from twinset.generators.image_files import UnusableImage
from twinset.generators.video import frames
from twinset.generators.video.frame_pairs import as_sentence
from twinset.generators.video.frames import VideoFrame, frame_times, read_frames, upright_rgb
from twinset.generators.video.segments import YouCook2
from twinset.generators.video.timeline import Addressing, Timeline
from twinset.generators.video.video_file import BrokenMedia, open_video
from twinset.shards.contracts import Context

CLIPS = Path(__file__).parents[3] / "../shared/data/videos"


def taken(path: Path, addresses: list[float], addressing: Addressing = "seconds") -> list[VideoFrame]:
    read_at = read_frames(path, addresses, addressing)
    frames = [frame for at in addresses if isinstance(frame := read_at[at], VideoFrame)]
    assert len(frames) == len(addresses), read_at
    return frames


def sequential(path: Path) -> list[str]:
    """Digest of every frame, decoded one after the other."""
    with open_video(path) as file:
        return [digest(upright_rgb(frame)) for frame in file.decode(file.packets())]


def digest(pixels: np.ndarray) -> str:
    return hashlib.sha256(pixels.tobytes()).hexdigest()


OPEN_GOP = "open-gop=1:keyint=12:min-keyint=12:bframes=3"
ENCODINGS: dict[str, tuple[str, str, dict[str, str]]] = {
    "b-pyramid": ("a.mkv", "libx264", {"x264-params": "bframes=7:b-adapt=0:b-pyramid=normal:keyint=40:scenecut=0"}),
    "open-gop": ("a.mp4", "libx264", {"x264-params": f"{OPEN_GOP}:b-adapt=0:scenecut=0"}),
    "gradual-refresh": ("a.mp4", "libx264", {"x264-params": "intra-refresh=1:keyint=15:bframes=0"}),
    "one-key-frame": ("a.mov", "libx264", {"g": "999", "bf": "2"}),
    "hevc-open-gop": ("a.mkv", "libx265", {"x265-params": f"log-level=none:{OPEN_GOP}"}),
    "vp9": ("a.webm", "libvpx-vp9", {"g": "20", "deadline": "realtime", "cpu-used": "8", "lag-in-frames": "10"}),
    "vp8-hidden-frames": ("a.webm", "libvpx", {"g": "20", "auto-alt-ref": "1", "lag-in-frames": "10", "cpu-used": "4"}),
    "av1": ("a.mkv", "libsvtav1", {"g": "20", "preset": "12", "svtav1-params": "lp=1"}),
    "avi-without-pts": ("a.avi", "libx264", {"bf": "2", "g": "20"}),
    "mpeg-ts": ("a.ts", "libx264", {"bf": "2", "g": "20"}),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_frame_is_exact_alone_and_with_others(name: str, tmp_path: Path) -> None:
    file, codec, options = ENCODINGS[name]
    path = make_video(tmp_path / file, codec=codec, options=options)
    expected = sequential(path)
    assert len(expected) == 60
    # An AVI file has decoding times only: with B-frames all come a frame or two late, in ffmpeg and players as well.
    start = taken(path, [0.0])[0].pts
    assert start == 0 or path.suffix == ".avi"
    times = [start + n / RATE for n in range(60)]
    together = taken(path, times)
    assert [frame.index for frame in together] == list(range(60))
    assert [digest(frame.pixels) for frame in together] == expected
    assert [read(frame.pixels) for frame in together] == list(range(60))
    np.testing.assert_allclose([frame.pts for frame in together], times, atol=0.001)
    for n in (0, 11, 13, 24, 37, 59):
        assert digest(taken(path, [times[n]])[0].pixels) == expected[n], n
    spread = [times[n] for n in (59, 13, 12)]
    assert [read(frame.pixels) for frame in taken(path, spread)] == [59, 13, 12]


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(25), Fraction(30), Fraction(30000, 1001)])
def test_an_exact_middle_means_the_earlier_frame_at_any_rate(rate: Fraction) -> None:
    """1/60 s, the middle of the first two frames at 30 a second, is 0.016667 s to the microsecond: past the middle."""
    timeline = Timeline(range(91), [1] * 91, 1 / rate, Fraction(0), rate, True)
    middles = [float((n + Fraction(1, 2)) / rate) for n in range(90)]
    assert [timeline.nearest(middle) for middle in middles] == list(range(90))
    assert [timeline.nearest(middle + 2e-6) for middle in middles] == list(range(1, 91))


TURNS = {
    "quarter": ((0, 1, -1, 0), lambda p: np.rot90(p, -1)),
    "transposed": ((0, 1, 1, 0), lambda p: p.transpose(1, 0, 2)),
}


def matrix(a: int, b: int, c: int, d: int) -> bytes:
    """A display matrix in an MP4: 16.16 and 2.30 numbers."""
    return np.array([a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30], ">i4").tobytes()


@pytest.mark.parametrize("name", TURNS)
def test_the_display_matrix_is_applied(name: str, tmp_path: Path) -> None:
    numbers, turn = TURNS[name]
    path = make_video(tmp_path / "a.mp4", count=20)
    plain = taken(path, [0.4])[0].pixels
    start, _, end = path.read_bytes().rpartition(matrix(1, 0, 0, 1))  # the track's; PyAV cannot set one
    path.write_bytes(start + matrix(*numbers) + end)
    assert np.array_equal(taken(path, [0.4])[0].pixels, turn(plain))


# What `ffmpeg -i VIDEO %06d.png` of ffmpeg 5.1.9 wrote for frames at these times (ms): how many copies of each.
GAP = [0, 40, 80, 480, 500, 520, 2000, 2040, 2080, 2120]
DUMPS = {
    "gap.mkv": (GAP, [1, 1, 9, 2, 1, 35, 2, 1, 1, 1]),
    "gap.mp4": (GAP, [1, 2, 20, 2, 1, 73, 2, 2, 2, 2]),
    "burst.mkv": ([0, 40, 50, 60, 70, 80, 120, 160, 200, 240], [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]),
    "late-start.mkv": ([520, 560, 600, 640, 690, 740, 790, 840, 880, 920], [1, 1, 1, 1, 1, 2, 1, 1, 1, 1]),
}


@pytest.mark.parametrize("file", DUMPS)
def test_numbers_are_those_of_an_ffmpeg_dump(file: str, tmp_path: Path) -> None:
    ticks, copies = DUMPS[file]
    path = make_video(tmp_path / file, count=len(ticks), ticks=ticks, options={"bf": "2"})
    times = [(tick - ticks[0]) / 1000 for tick in ticks]
    for late in (0.004, -0.004):  # of a variable rate, too, the nearest frame is taken
        frames = taken(path, [max(at + late, 0.0) for at in times])
        assert [read(frame.pixels) for frame in frames] == list(range(len(ticks)))
        assert [frame.pts for frame in frames] == pytest.approx(times, abs=1e-9)
    expected = np.repeat(range(len(ticks)), copies).tolist()
    numbers = [float(n + 1) for n in range(len(expected))]
    assert [read(frame.pixels) for frame in taken(path, numbers, "numbers")] == expected
    beyond = read_frames(path, [0.0, 2.5, len(expected) + 1.0], "numbers").values()
    assert all(isinstance(frame, UnusableImage) for frame in beyond)


def test_a_playlist_named_like_a_video_opens_nothing(tmp_path: Path) -> None:
    make_video(tmp_path / "secret.ts", options={"g": "10"})
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile secret.ts\n")
    with pytest.raises(BrokenMedia, match=r"list\.mp4"):
        read_frames(tmp_path / "list.mp4", [0.0], "seconds")


# Number in an ffmpeg 5.1.9 dump -> decoded frame, around the places where the two part.
REAL_CLIPS: dict[str, dict[int, int]] = {
    "cockatoo.mp4": {},  # 4:4:4 of an old x264, decoded otherwise unless the version in its first frame was seen
    "mmaction2_test.avi": {1: 0, 2: 0, 3: 1, 165: 163},
    "pyscenedetect_goldeneye-vfr-drop3.mp4": {1: 0, 2: 1, 3: 2, 4: 2, 6: 4, 7: 4, 10: 6, 100: 66, 165: 110, 239: 159},
    "pyscenedetect_issue-134-rotate.mp4": {},
    "short_hamilton_clip.mp4": {1: 0, 26: 0, 27: 1, 31: 5, 300: 274},
    "videollama_skateboarding_dog.mp4": {1: 0, 2: 0, 3: 1, 421: 419, 424: 419, 425: 420, 426: 420},
}


@pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")
@pytest.mark.slow
@pytest.mark.parametrize("clip", REAL_CLIPS)
def test_real_clips_equal_a_sequential_decode_and_an_ffmpeg_dump(clip: str) -> None:
    path, numbers = CLIPS / clip, REAL_CLIPS[clip]
    expected = sequential(path)
    times = frame_times(path)
    picks = [*range(0, len(times), 23), len(times) - 1]
    together = taken(path, [times[n] for n in picks])
    assert [digest(frame.pixels) for frame in together] == [expected[n] for n in picks]
    dumped = taken(path, [float(number) for number in numbers], "numbers")
    assert [frame.index for frame in dumped] == list(numbers.values())


@pytest.mark.parametrize("name", ["open-gop", "vp8-hidden-frames", "avi-without-pts", "mpeg-ts"])
def test_a_video_that_is_damaged_or_cut_off_gives_no_frames(name: str, tmp_path: Path) -> None:
    file, codec, options = ENCODINGS[name]
    path = make_video(tmp_path / file, count=200, codec=codec, options=options)
    data = path.read_bytes()
    with av.open(str(path)) as container:
        places = [packet.pos or 0 for packet in container.demux(container.streams.video[0]) if packet.size]
    # From the start of a packet: of one that is damaged near its end a decoder may notice nothing.
    start = next(place for place in places if place > 0.4 * len(data))
    # MPEG-TS counts its parts modulo 16: that 16, 32 ... of them are missing cannot be seen, nor that it ends early.
    hole = len(data) // 20 + 188 * (path.suffix == ".ts")
    holes = [data[:start] + (fill * hole)[:hole] + data[start + hole :] for fill in (b"\0", b"\xff", b"noise, ")]
    for content in holes if path.suffix == ".ts" else [*holes, data[: len(data) // 2]]:
        path.write_bytes(content)
        with pytest.raises(BrokenMedia, match=rf"{file}: .*; get the file anew"):
            read_frames(path, [n / RATE for n in range(3, 200)], "seconds")


@pytest.mark.parametrize(("file", "first", "chosen"), [("a.mkv", 0, 1), ("a.mkv", Disposition.default, 0)])
def test_the_stream_that_ffmpeg_chooses_is_read(file: str, first: int, chosen: int, tmp_path: Path) -> None:
    """The larger one, unless the first is the default: so ffmpeg 4.2.2 chose."""
    with av.open(str(tmp_path / file), "w") as container:
        streams = [container.add_stream("libx264", rate=25) for _ in range(2)]
        for stream, height, flag in zip(streams, (48, 96), (first, 0), strict=True):
            stream.width, stream.height, stream.pix_fmt = WIDTH, height, "yuv420p"
            stream.disposition = Disposition(flag)
        for stream in streams:
            container.mux([*stream.encode(av.VideoFrame(WIDTH, stream.height, "yuv420p")), *stream.encode()])
    with open_video(tmp_path / file) as video:
        assert video.stream.index == chosen


def test_a_title_that_is_not_utf_8_is_no_reason_to_refuse_a_video(tmp_path: Path) -> None:
    path = make_video(tmp_path / "titled.mp4", count=2)
    whole = path.read_bytes()
    assert whole.count(b"Lavf") == 1  # the file names its writer
    path.write_bytes(whole.replace(b"Lavf", b"\xff\xfevf"))
    with open_video(path) as video:
        assert video.stream.width == WIDTH


def made(folder: Path, *wanted: tuple[str, float, float]) -> list[Any]:
    source: Any = YouCook2(kind="youcook2", annotations=folder / "none", media=folder).open(Context("eq"))
    captions = (("before", "more"), ("after",))
    planned = [source.planned((at[0], *map(str, at)), captions, at[1:], "status", {"video": at[0]}) for at in wanted]
    return list(source.make(planned))


def test_what_gives_no_pair_rejects_its_own_candidate_only(tmp_path: Path) -> None:
    make_video(tmp_path / "clip.mp4")
    (tmp_path / "empty.mp4").touch()
    expected: dict[tuple[str, float, float], tuple[str, str | None, int | None]] = {  # reason, media and its size
        ("gone", 0.4, 0.8): ("missing-media", "gone", None),
        ("empty", 0.4, 0.8): ("broken-media", "empty", 0),
        ("../clip", 0.4, 0.8): ("unsafe-path", None, None),
        ("clip", 0.4, 0.41): ("same-frame", None, None),
        ("clip", 0.4, 9.0): ("beyond-end", None, None),
        ("clip", float("nan"), 0.4): ("beyond-end", None, None),
    }
    *bad, good = made(tmp_path, *expected, ("clip", 0.4, 0.8))
    assert [(result.reason, result.media, result.media_size) for result in bad] == list(expected.values())
    assert read(good.image0.pixels) == 10


@pytest.mark.parametrize("before", [0, 1])
def test_trouble_of_the_machine_ends_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """FFmpeg cannot tell a disk that fails from a broken video: the file is read again to tell."""
    (tmp_path / "clip.mp4").write_text("no video")
    reads = Mock(side_effect=[("0" * 64, 8)] * before + [OSError(errno.EIO, "trouble")])
    monkeypatch.setattr(frames, "sha256_of_file", reads)
    with pytest.raises(OSError, match="trouble"):
        made(tmp_path, ("clip", 0.0, 0.4))


def test_phrases_become_sentences() -> None:
    sentences = {
        ("man in yellow t-shirt", "take back\none  leg"): "Man in yellow t-shirt take back one leg.",
        ("add the onion to the pand]",): "Add the onion to the pand.",
        ("heat tortillas with the green onions '",): "Heat tortillas with the green onions.",
        ("is it done (now) ?",): "Is it done (now)?",
        ("nul\x00byte",): "Nul byte.",
        ("...",): "",
    }
    assert {phrases: as_sentence(*phrases) for phrases in sentences} == sentences
