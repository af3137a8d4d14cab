"""Middle frames of a long video: ours against OpenCV, read one by one and by seeking, one thread each.

    python -m tests.benchmarks.bench_video [--minutes 10] [--segments 8] [--clip CLIP]

The video is some seconds of H.264 with B-frames (640 x 360, x264's defaults), remuxed in a loop to the wanted length,
so that it is as costly to decode as a real one but quickly made; a `--clip` is lengthened likewise. Timed is the whole
read as a build does it: opening, finding the frames and converting them to RGB, for the middle frames of equally
long segments. All frames read must be the wanted ones: the likest among it and the three on either side in a full
sequential decode.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np

from tests.benchmarks.measured import OURS, compare
from twinset.contracts.kinds.samples import Pixels
from twinset.generators.video.frames import VideoFrame, read_frames, upright_rgb
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


def exact(path: Path, wanted: list[float], frames: list[Pixels]) -> int:
    """How many of the frames are the wanted ones."""
    with open_video(path) as file:
        ticks = sorted(packet.pts for packet in file.listed if packet.pts is not None)
        times = np.array([float((tick - ticks[0]) * file.stream.time_base) for tick in ticks])
        aims = [int(np.argmin(np.abs(times - at))) for at in wanted]
        near = {n for aim in aims for n in range(aim - 3, aim + 4)}
        around = {}
        for index, frame in enumerate(file.decode(file.packets())):
            if index in near:
                around[index] = upright_rgb(frame).astype(np.int16)
            if index > max(near):
                break
    right = 0
    for aim, pixels in zip(aims, frames, strict=True):
        away = {n: np.abs(around[n] - pixels).mean() for n in range(aim - 3, aim + 4) if n in around}
        right += bool(away[aim] <= min(away.values()))
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--clip", type=Path, help="instead of a drawn one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clip, path = options.clip or Path(folder, "drawn.mp4"), Path(folder, "long.mp4")
        if options.clip is None:
            encode(clip)
        lengthen(clip, path, options.minutes * 60)
        with open_video(path) as file:
            rate, count = float(file.stream.average_rate or 25), len(file.listed)
        # The middle of each segment, on a frame, so that no method loses by rounding.
        wanted = [int(count * (2 * n + 1) / (2 * options.segments)) / rate for n in range(options.segments)]
        results = compare(
            f"{options.segments} middle frames of {clip.stem}, {count / rate:.0f} s, exact, one thread, CPU time",
            partial(ours, path, wanted),
            {f"OpenCV {way}": partial(opencv, path, wanted, way == "seeking") for way in ("seeking", "sequential")},
        )
        assert exact(path, wanted, results[OURS]) == len(wanted)


if __name__ == "__main__":
    main()
