"""Middle frames of a long video: ours against OpenCV, read one by one and by seeking, one thread each.

    python -m tests.benchmarks.bench_video [--minutes 10] [--segments 8]

The video is some seconds of H.264 with B-frames (640 x 360, x264's defaults), remuxed in a loop to the wanted length,
so that it is as costly to decode as a real one but quickly made. Timed is the whole read as a build does it: opening,
finding the frames and converting them to RGB, for the middle frames of equally long segments. All frames read must be
those of OpenCV's sequential decode.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np

from tests.benchmarks.measured import OURS, compare
from tests.options import options
from twinset.contracts.kinds.samples import Pixels
from twinset.generators.video.frames import VideoFrame, read_frames
from twinset.generators.video.video_file import open_video

SECONDS, RATE, SIZE = 40, 25, (640, 360)


def encode(path: Path) -> None:
    """A moving, noisy scene with cuts."""
    width, height = SIZE
    rng = np.random.default_rng(0)
    scenes = [np.kron(rng.integers(0, 256, (60, 120, 3)), np.ones((16, 16, 1))).astype(np.uint8) for _ in range(3)]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"bf": "3", "g": "250"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for n in range(SECONDS * RATE):
            scene = scenes[n // 330 % len(scenes)]
            picture = scene[n % 400 :, n % 900 :][:height, :width].astype(np.int16)
            picture = np.clip(picture // 2 + 64 + rng.integers(-2, 3, (height, width, 1)), 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")))
        container.mux(stream.encode())


def lengthen(clip: Path, path: Path, seconds: float) -> None:
    """Remux the video stream of a clip again and again, without decoding."""
    with av.open(str(path), "w") as container:
        target, shift, reached = None, 0, 0.0
        while reached < seconds:
            with av.open(str(clip)) as source:
                stream = source.streams.video[0]
                target = target or container.add_stream_from_template(stream)
                end = 0
                for packet in source.demux(stream):
                    if packet.size:
                        end = max(end, packet.pts + (packet.duration or 1))
                        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                        packet.stream = target
                        container.mux(packet)
                shift += end
                reached = float(shift * stream.time_base)


def ours(path: Path, wanted: list[float]) -> list[Pixels]:
    read = read_frames(path, wanted, "seconds")
    return [frame.pixels for at in wanted if isinstance(frame := read[at], VideoFrame)]


def opencv(path: Path, wanted: list[float], seeking: bool) -> list[Pixels]:
    import cv2

    capture: Any = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    frames, at = [], 0
    for index in (round(seconds * capture.get(cv2.CAP_PROP_FPS)) for seconds in wanted):
        if seeking:
            capture.set(cv2.CAP_PROP_POS_FRAMES, index)
        while not seeking and at < index:
            capture.grab()  # decodes; read() also converts, here the wanted frames only
            at += 1
        frames.append(cv2.cvtColor(capture.read()[1], cv2.COLOR_BGR2RGB))
        at += 1
    return frames


def main() -> None:
    given = options(__doc__, minutes=10.0, segments=8)
    with tempfile.TemporaryDirectory() as folder:
        clip, path = Path(folder, "drawn.mp4"), Path(folder, "long.mp4")
        encode(clip)
        lengthen(clip, path, given.minutes * 60)
        with open_video(path) as file:
            rate, count = float(file.stream.average_rate or 25), len(file.listed)
        # The middle of each segment, on a frame, so that no method loses by rounding.
        wanted = [int(count * (2 * n + 1) / (2 * given.segments)) / rate for n in range(given.segments)]
        results = compare(
            f"{clip.stem}, {count / rate:.0f} s, {given.segments} frames, 1 thread",
            partial(ours, path, wanted),
            {f"OpenCV {way}": partial(opencv, path, wanted, way == "seeking") for way in ("seeking", "sequential")},
        )
        for frame, decoded in zip(results[OURS], results["OpenCV sequential"], strict=True):
            assert np.abs(frame.astype(int) - decoded).mean() < 4, "another frame"  # converted to RGB otherwise


if __name__ == "__main__":
    main()
