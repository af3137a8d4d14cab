"""Frames by time and by number: exact on every odd kind of video, whatever else is asked for."""

import ctypes
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.generators.video.decoded_frames import digest, sequential, taken
from tests.generators.video.numbered_videos import ONE, RATE, W, add_sound, draw, make_video, read
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.decoding import Timeline, best_effort, turned
from twinset.generators.video.frames import VideoFrame, read_frames
from twinset.generators.video.video_file import BrokenMedia

ROOT = Path(__file__).parents[3]


ENCODINGS = {
    "b-frames": ("a.mp4", "libx264", {"bf": "3", "g": "25"}),
    "b-pyramid": ("a.mkv", "libx264", {"x264-params": "bframes=7:b-adapt=0:b-pyramid=normal:keyint=40:scenecut=0"}),
    "open-gop": (
        "a.mp4",
        "libx264",
        {"x264-params": "open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0:scenecut=0"},
    ),
    "open-gop-mkv": ("a.mkv", "libx264", {"x264-params": "open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0"}),
    "gradual-refresh": ("a.mp4", "libx264", {"x264-params": "intra-refresh=1:keyint=15:bframes=0"}),
    "all-intra": ("a.mp4", "libx264", {"g": "1"}),
    "one-key-frame": ("a.mov", "libx264", {"g": "999", "bf": "2"}),
    "hevc-open-gop": (
        "a.mkv",
        "libx265",
        {"x265-params": "log-level=none:keyint=12:min-keyint=12:bframes=3:open-gop=1"},
    ),
    "vp9": ("a.webm", "libvpx-vp9", {"g": "20", "deadline": "realtime", "cpu-used": "8", "lag-in-frames": "10"}),
    "vp8-hidden-frames": ("a.webm", "libvpx", {"g": "20", "auto-alt-ref": "1", "lag-in-frames": "10", "cpu-used": "4"}),
    "av1": ("a.mkv", "libsvtav1", {"g": "20", "preset": "12", "svtav1-params": "lp=1"}),
    "avi-without-pts": ("a.avi", "libx264", {"bf": "2", "g": "20"}),
    "avi-mpeg4": ("a.avi", "mpeg4", {"g": "20", "bf": "2", "b": "2M"}),
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
    for n in (0, 1, 10, 11, 13, 23, 24, 25, 37, 58, 59):
        assert digest(taken(path, [times[n]])[0].pixels) == expected[n], n
    spread = [times[n] for n in (59, 13, 12)]
    assert [read(frame.pixels) for frame in taken(path, spread)] == [59, 13, 12]


def test_variable_frame_rate_takes_the_nearest_frame(tmp_path: Path) -> None:
    ticks = [0, 40, 80, 480, 500, 520, 2000, 2010, 2020, 2500]
    path = make_video(tmp_path / "a.mkv", count=10, ticks=ticks, options={"bf": "2"})
    wanted = {0.0: 0, 0.059: 1, 0.061: 2, 0.279: 2, 0.281: 3, 1.0: 5, 1.27: 6, 2.014: 7, 2.016: 8, 2.4: 9}
    frames = taken(path, list(wanted))
    assert [read(frame.pixels) for frame in frames] == list(wanted.values())
    assert [frame.pts for frame in frames] == pytest.approx([ticks[n] / 1000 for n in wanted.values()], abs=1e-9)


def test_of_two_frames_as_near_the_earlier_is_taken() -> None:
    timeline = Timeline([0, 1, 2], [1, 1, 1], Fraction(1, 10), Fraction(0), Fraction(10), True)
    assert timeline.nearest([0.05, 0.15, 0.1500011]) == {0.05: 0, 0.15: 1, 0.1500011: 2}


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(25), Fraction(30), Fraction(30000, 1001)])
def test_an_exact_middle_means_the_earlier_frame_at_any_rate(rate: Fraction) -> None:
    """1/60 s, the middle of the first two frames at 30 a second, is 0.016667 s to the microsecond: past the middle."""
    timeline = Timeline(range(91), [1] * 91, 1 / rate, Fraction(0), rate, True)
    middles = [float((n + Fraction(1, 2)) / rate) for n in range(90)]
    assert list(timeline.nearest(middles).values()) == list(range(90))
    after = [middle + 2e-6 for middle in middles]
    assert list(timeline.nearest(after).values()) == list(range(1, 91))


def test_addresses_of_one_frame_share_it(tmp_path: Path) -> None:
    first, second = taken(make_video(tmp_path / "a.mp4"), [0.4, 0.41])
    assert first is second


def test_time_counts_from_the_first_frame_of_a_lone_stream(tmp_path: Path) -> None:
    ticks = [8005 + 40 * n for n in range(30)]
    path = make_video(tmp_path / "a.mkv", count=30, ticks=ticks, options={"bf": "2"})
    (frame,) = taken(path, [0.4])
    assert read(frame.pixels) == 10
    assert frame.pts == pytest.approx(0.4)


def test_time_counts_from_earlier_sound(tmp_path: Path) -> None:
    path = add_sound(make_video(tmp_path / "a.mkv"), tmp_path / "b.mkv", Fraction(4, 5))
    frames = taken(path, [0.0, 0.8, 1.2])
    assert [read(frame.pixels) for frame in frames] == [0, 0, 10]
    assert frames[2].pts == pytest.approx(1.2, abs=0.002)
    # ffmpeg repeats the first frame until then: 0.8 s are 20 slots.
    assert [read(frame.pixels) for frame in taken(path, [1, 20, 21, 22, 31], "numbers")] == [0, 0, 0, 1, 10]


MATRICES = {
    "upright": ([ONE, 0, 0, 0, ONE, 0, 0, 0, W], lambda p: p),
    "quarter": ([0, ONE, 0, -ONE, 0, 0, 0, 0, W], lambda p: np.rot90(p, -1)),
    "half": ([-ONE, 0, 0, 0, -ONE, 0, 0, 0, W], lambda p: np.rot90(p, 2)),
    "three-quarters": ([0, -ONE, 0, ONE, 0, 0, 0, 0, W], lambda p: np.rot90(p, 1)),
    "mirrored": ([-ONE, 0, 0, 0, ONE, 0, 0, 0, W], lambda p: p[:, ::-1]),
    "upside-down-mirrored": ([ONE, 0, 0, 0, -ONE, 0, 0, 0, W], lambda p: p[::-1]),
    "transposed": ([0, ONE, 0, ONE, 0, 0, 0, 0, W], lambda p: p.transpose(1, 0, 2)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_display_matrix_is_applied(name: str, tmp_path: Path) -> None:
    matrix, turn = MATRICES[name]
    plain = taken(make_video(tmp_path / "plain.mp4", count=20), [0.4])[0].pixels
    path = make_video(tmp_path / "a.mp4", count=20, matrix=matrix)
    assert np.array_equal(taken(path, [0.4])[0].pixels, turn(plain))


def test_odd_angles_go_to_the_nearest_quarter() -> None:
    pixels = draw(5)
    tilted = np.array([[ONE // 10, ONE, 0], [-ONE, ONE // 10, 0], [0, 0, W]], np.int32)
    assert np.array_equal(turned(pixels, tilted), np.rot90(pixels, -1))


def test_beyond_the_end(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", count=25)  # ends at 1.0 s
    found = read_frames(path, [1.0, 1.49, 1.51, 99.0, float("nan"), float("inf")], "seconds")
    assert [isinstance(frame, VideoFrame) for frame in found.values()] == [True, True, False, False, False, False]
    assert isinstance(late := found[99.0], UnusableImage) and late.reason == "beyond-end" and "25 frames" in late.detail
    numbers = read_frames(path, [0.0, 1.0, 2.5, 25.0, 26.0], "numbers")
    assert [isinstance(frame, VideoFrame) for frame in numbers.values()] == [False, True, False, True, False]


# What `ffmpeg -i VIDEO %06d.png` of ffmpeg 5.1.9 wrote for frames at these times (ms): (frame, copies) in order.
DUMPS = {
    "gap": ("a.mkv", [0, 40, 80, 480, 500, 520, 2000, 2040, 2080, 2120]),
    "gap-mp4": ("a.mp4", [0, 40, 80, 480, 500, 520, 2000, 2040, 2080, 2120]),
    "burst": ("a.mkv", [0, 40, 50, 60, 70, 80, 120, 160, 200, 240]),
    "late-start": ("a.mkv", [520, 560, 600, 640, 690, 740, 790, 840, 880, 920]),
}
COPIES = {
    "gap": [(0, 1), (1, 1), (2, 9), (3, 2), (4, 1), (5, 35), (6, 2), (7, 1), (8, 1), (9, 1)],
    "gap-mp4": [(0, 1), (1, 2), (2, 20), (3, 2), (4, 1), (5, 73), (6, 2), (7, 2), (8, 2), (9, 2)],
    "burst": [(0, 1), (1, 1), (2, 1), (3, 1), (5, 1), (6, 1), (7, 1), (8, 1), (9, 1)],
    "late-start": [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1), (7, 1), (8, 1), (9, 1)],
}
EXPECTED = {name: [frame for frame, copies in runs for _ in range(copies)] for name, runs in COPIES.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_numbers_are_those_of_an_ffmpeg_dump(name: str, tmp_path: Path) -> None:
    file, ticks = DUMPS[name]
    path = make_video(tmp_path / file, count=len(ticks), ticks=ticks, options={"bf": "2"})
    expected = EXPECTED[name]
    numbers = [float(n + 1) for n in range(len(expected))]
    assert [read(frame.pixels) for frame in taken(path, numbers, "numbers")] == expected
    beyond = read_frames(path, [len(expected) + 1.0], "numbers")
    assert isinstance(beyond[len(expected) + 1.0], UnusableImage)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg on this machine; the recorded dumps are tested")
@pytest.mark.parametrize("name", DUMPS)
def test_numbers_agree_with_the_ffmpeg_of_this_machine(name: str, tmp_path: Path) -> None:
    file, ticks = DUMPS[name]
    path = make_video(tmp_path / file, count=len(ticks), ticks=ticks, options={"bf": "2"})
    version = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout.split()[2]
    if int(version.split(".")[0].lstrip("n")) > 5:
        pytest.skip(f"ffmpeg {version} repeats frames by other rules than 2.8 to 5.1")
    assert ffmpeg_dump(path, tmp_path) == EXPECTED[name]


def ffmpeg_dump(path: Path, folder: Path) -> list[int]:
    command = ["ffmpeg", "-v", "error", "-nostdin", "-i", str(path), str(folder / "%06d.png")]
    subprocess.run(command, check=True)
    from PIL import Image

    return [read(np.asarray(Image.open(picture).convert("RGB"))) for picture in sorted(folder.glob("0*.png"))]


def test_best_effort_timestamps() -> None:
    assert best_effort([(0, 0), (2, 1), (1, 2), (3, 3)]) == [0, 1, 2, 3]  # pts go backwards once, dts never
    assert best_effort([(None, 5), (None, 6), (None, None), (None, 9)]) == [5, 6, 7, 9]
    assert best_effort([(4, None), (8, None)]) == [4, 8]
    assert best_effort([(None, None), (None, None)]) == [0, 1]


def test_a_truncated_video_gives_the_frames_that_are_there(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", options={"g": "10"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found = read_frames(path, [0.2, 0.6, 2.2], "seconds")
    assert [read(found[at].pixels) for at in (0.2, 0.6)] == [5, 15]  # type: ignore[union-attr]
    lost = found[2.2]
    assert isinstance(lost, UnusableImage) and lost.reason == "broken-media" and "a.mkv" in lost.detail


def test_what_is_no_video_is_broken(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "whole.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])  # its index stood at the end
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("a video, honestly\n" * 100)
    (tmp_path / "noise.mp4").write_bytes(np.random.default_rng(0).bytes(100_000))
    for name in ("cut", "empty", "text", "noise"):
        with pytest.raises(BrokenMedia, match=f"{name}.mp4"):
            read_frames(tmp_path / f"{name}.mp4", [0.0], "seconds")


def test_a_playlist_named_like_a_video_opens_nothing(tmp_path: Path) -> None:
    make_video(tmp_path / "secret.ts", options={"g": "10"})
    playlist = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:3\n#EXTINF:2.4,\nsecret.ts\n#EXT-X-ENDLIST\n"
    for name, text in (("hls.mp4", playlist), ("list.mp4", "ffconcat version 1.0\nfile secret.ts\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(BrokenMedia, match=name):
            read_frames(tmp_path / name, [0.0], "seconds")


def test_damage_within_spares_the_frames_around(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", options={"g": "10", "bf": "0"})
    expected = sequential(path)
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        place, size = packets[25].pos, packets[25].size
    data = bytearray(path.read_bytes())
    data[place : place + size] = b"\xff" * size
    path.write_bytes(data)
    found = read_frames(path, [0.2, 1.0, 2.0], "seconds")
    assert [digest(found[at].pixels) for at in (0.2, 2.0)] == [expected[5], expected[50]]  # type: ignore[union-attr]
    assert found[1.0] == UnusableImage("broken-media", "a.mp4: the frame at 1 is damaged; get the file anew")


CPU_PROBE = """
import ctypes, glob, hashlib, pathlib, sys
import av
library = glob.glob(str(pathlib.Path(av.__file__).parent.parent / "av.libs" / "libavutil*"))
if not library:
    sys.exit(3)
ctypes.CDLL(library[0]).av_force_cpu_flags(int(sys.argv[1]))
from twinset.generators.video.frames import read_frames
for path in sys.argv[2:]:
    frames = read_frames(pathlib.Path(path), [0.0, 0.36, 1.0], "seconds")
    print(*(hashlib.sha256(frame.pixels.tobytes()).hexdigest() for frame in frames.values()))
"""


@pytest.mark.slow
def test_pixels_do_not_depend_on_the_instruction_set(tmp_path: Path) -> None:
    paths = [
        str(make_video(tmp_path / "a.mp4", options={"g": "20"})),
        str(make_video(tmp_path / "b.avi", codec="mpeg4", options={"b": "1M"})),
        str(make_video(tmp_path / "c.mp4", pix_fmt="yuvj420p")),
        str(make_video(tmp_path / "d.mp4", pix_fmt="yuv444p")),
    ]
    sse2, everything, nothing = "24", str(ctypes.c_int(0x7FFFFFFF).value), "0"
    outputs = set()
    for flags in (nothing, sse2, everything) if sys.platform == "linux" else ():
        flags = flags if flags != everything else "-1"
        run = subprocess.run([sys.executable, "-c", CPU_PROBE, flags, *paths], cwd=ROOT, capture_output=True, text=True)
        if run.returncode == 3:
            pytest.skip("PyAV's libavutil is not bundled here")
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1
