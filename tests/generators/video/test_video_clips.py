"""Frames of real clips by time and by number: exact, as a sequential decode and an ffmpeg dump give them."""

from fractions import Fraction
from pathlib import Path

import pytest

from tests.generators.video.decoded_frames import digest, sequential, taken
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.decoding import best_effort
from twinset.generators.video.frames import read_frames
from twinset.generators.video.video_file import VideoFile

CLIPS = Path(__file__).parents[3] / "../shared/data/videos"
pytestmark = pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")


@pytest.mark.slow
@pytest.mark.parametrize(
    "clip",
    [
        "cockatoo.mp4",
        "mmaction2_test.avi",
        "asl_book.mkv",
        "pyscenedetect_goldeneye-vfr-drop3.mp4",
        "pyscenedetect_issue-134-rotate.mp4",
        "short_hamilton_clip.mp4",
        "videollama_skateboarding_dog.mp4",
        "nasa_13013.mp4",
    ],
)
def test_real_clips_equal_a_sequential_decode(clip: str) -> None:
    path = CLIPS / clip
    expected = sequential(path)
    with VideoFile(path) as file:
        stream = file.stream
        stamps = [(frame.pts, frame.dts) for _, frame in file.decode(file.packets())]
        ticks = best_effort(stamps)
        start = min(Fraction(file.container.start_time, 1_000_000), ticks[0] * stream.time_base)
        times = [float(tick * stream.time_base - start) for tick in ticks]
    picks = [*range(0, len(times), 23), len(times) - 1]
    together = taken(path, [times[n] for n in picks])
    assert [digest(frame.pixels) for frame in together] == [expected[n] for n in picks]
    for n in picks[-4:-1]:
        assert digest(taken(path, [times[n]])[0].pixels) == expected[n]


@pytest.mark.slow
def test_a_decoder_that_enters_late_knows_what_the_first_frame_told() -> None:
    """This clip is 4:4:4 of an old x264, decoded otherwise unless the version in its first frame was seen."""
    path = CLIPS / "cockatoo.mp4"
    expected = sequential(path)
    for n in (215, 217):
        assert digest(taken(path, [n / 20])[0].pixels) == expected[n]


# Number in an ffmpeg 5.1.9 dump -> decoded frame, around the places where the two part.
REAL_DUMPS = {
    "pyscenedetect_goldeneye-vfr-drop3.mp4": {1: 0, 2: 1, 3: 2, 4: 2, 6: 4, 7: 4, 10: 6, 100: 66, 165: 110, 239: 159},
    "short_hamilton_clip.mp4": {1: 0, 26: 0, 27: 1, 31: 5, 300: 274},
    "mmaction2_part_0.mp4": {31: 30, 32: 31, 33: 31},
    "mmaction2_test.avi": {1: 0, 2: 0, 3: 1, 165: 163},
    "videollama_skateboarding_dog.mp4": {1: 0, 2: 0, 3: 1, 421: 419, 424: 419, 425: 420, 426: 420},
}


@pytest.mark.parametrize("clip", REAL_DUMPS)
def test_numbers_of_real_clips_are_those_of_an_ffmpeg_dump(clip: str) -> None:
    expected = REAL_DUMPS[clip]
    frames = taken(CLIPS / clip, [float(number) for number in expected], "numbers")
    assert [frame.index for frame in frames] == list(expected.values())
    last = float(max(expected))
    assert isinstance(read_frames(CLIPS / clip, [last + 1], "numbers")[last + 1], UnusableImage)
