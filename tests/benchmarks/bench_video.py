"""Middle frames of long videos: ours against OpenCV, read one by one and by seeking.

    python tests/benchmarks/bench_video.py [--minutes 10] [--segments 8] [--clip CLIP ...]

Each video is some seconds of H.264 with B-frames (640 x 360, x264's defaults), remuxed in a loop to the wanted length,
so that it is as costly to decode as a real one but quickly made. A `--clip` is lengthened likewise. Timed is the whole
read as a build does it: opening, finding the frames and converting them to RGB, for the middle frames of equally
long segments. Ours decodes a video with one thread, as a build does, whose shards are the parallelism. So one video is
compared with OpenCV on one thread, and a job of as many videos as cores, one thread each, with OpenCV's default
threads (all cores) on one video after the other. CPU time is the whole process's, and is what counts on a busy
machine. Exact means: the frame is the wanted one, the likest among it and the three on either side in
a full sequential decode.

The bound is how many times longer a bare decoder takes from the key frame before each wanted frame to that frame when
it decodes everything, which is what seeking does, than when it leaves out the frames to which no other refers. No exact
reader with one decoder can beat seeking by much more than that. With x264's defaults (B-pyramid) about half of the
frames are no reference, and they are the cheaper half; measured bounds are 1.54 for the drawn video, 1.38 for
`askanything_yoga` (neither can reach 1.5 as a whole) and 2.28 for `videollama_skateboarding_dog` (flat B-frames).
Where each wanted frame happens to be a key frame, as in `bottle-detection`, the bound is 1 and the ratio says only that
OpenCV starts at the key frame before: it seeks some frames ahead of the wanted one.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path

import av
import numpy as np
from measured import row

sys.path.insert(0, str(Path(__file__).parents[2]))

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.video.frames import VideoFrame, read_frames, upright_rgb
from twinset.generators.video.video_file import open_video

SECONDS, RATE, SIZE = 40, 25, (640, 360)
ROUNDS = 3


def encode(path: Path) -> None:
    """A moving, noisy scene with cuts."""
    width, height = SIZE
    rng = np.random.default_rng(0)
    scenes = [
        np.kron(rng.integers(0, 256, (60, 120, 3)), np.ones((16, 16, 1))).astype(np.uint8)[:, :, :] for _ in range(3)
    ]
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


def opencv_sequential(path: Path, wanted: list[float], threads: int) -> list[Pixels]:
    import cv2

    capture = open_capture(path, threads)
    indices = [round(at * capture.get(cv2.CAP_PROP_FPS)) for at in wanted]
    found = []
    for index in range(indices[-1] + 1):
        capture.grab()  # decodes; retrieve() converts, here for the wanted frames only
        if index in indices:
            found.append(cv2.cvtColor(capture.retrieve()[1], cv2.COLOR_BGR2RGB))
    return found


def opencv_seeking(path: Path, wanted: list[float], threads: int) -> list[Pixels]:
    import cv2

    capture = open_capture(path, threads)
    found = []
    for at in wanted:
        capture.set(cv2.CAP_PROP_POS_FRAMES, round(at * capture.get(cv2.CAP_PROP_FPS)))
        found.append(cv2.cvtColor(capture.read()[1], cv2.COLOR_BGR2RGB))
    return found


RIVALS = {"seeking": opencv_seeking, "sequential": opencv_sequential}


def open_capture(path: Path, threads: int):  # type: ignore[no-untyped-def]
    import cv2

    if threads:
        return cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, threads])
    return cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)


def timed(read: Callable[[], list[Pixels]]) -> tuple[float, float, list[Pixels]]:
    """Wall and CPU time (s), and what was read."""
    wall, processor = time.perf_counter(), time.process_time()
    found = read()
    return time.perf_counter() - wall, time.process_time() - processor, found


def exact(path: Path, wanted: list[float], found: list[Pixels]) -> str:
    """How many of the frames are the wanted ones."""
    if len(found) != len(wanted):
        return f"{len(found)} of {len(wanted)} read"
    with open_video(path) as file:
        ticks = sorted(packet.pts for packet in file.listed if packet.pts is not None)
        first = ticks[0] * file.stream.time_base
        times = np.array([float(tick * file.stream.time_base - first) for tick in ticks])
        aims = [int(np.argmin(np.abs(times - at))) for at in wanted]
        near = {n for aim in aims for n in range(aim - 3, aim + 4)}
        around = {}
        for index, frame in enumerate(file.decode(file.packets())):
            if index in near:
                around[index] = upright_rgb(frame).astype(np.int16)
            if index > max(near):
                break
    right = 0
    for aim, pixels in zip(aims, found, strict=True):
        away = {n: np.abs(around[n] - pixels).mean() for n in range(aim - 3, aim + 4) if n in around}
        right += away[aim] <= min(away.values())
    return f"{right} of {len(wanted)} exact"


def decoding(path: Path, wanted: list[float], skipping: bool) -> float:
    """Least CPU time (s) of a bare decoder from the key frames before the wanted frames to these."""
    times = []
    with open_video(path) as file:
        codec = file.stream.codec_context
        ticks = sorted(packet.pts for packet in file.listed if packet.pts is not None)
        rate = float(file.stream.average_rate or 25)
        for _ in range(ROUNDS):
            spent = 0.0
            for tick in (ticks[round(at * rate)] for at in wanted):
                packets = list(file.packets_from(max(key for key in file.keys if key <= tick), [tick]))
                codec.flush_buffers()
                start = time.process_time()
                for packet in packets:
                    codec.skip_frame = "NONREF" if skipping and packet.pts != tick else "DEFAULT"
                    codec.decode(packet)
                codec.decode(None)
                spent += time.process_time() - start
            times.append(spent)
    return min(times)


def bench(name: str, path: Path, segments: int) -> None:
    with open_video(path) as file:
        rate, count = float(file.stream.average_rate or 25), len(file.listed)
        keys = sum(packet.key for packet in file.listed)
        packets = islice(file.packets(), 1000)
        first = next(packets)
        file.stream.codec_context.skip_frame = "NONREF"
        skippable = 1 - sum(1 for _ in file.decode(chain([first], packets))) / min(count, 1000)
    # The middle of each segment, on a frame, so that no method loses by rounding.
    wanted = [int(count * (2 * n + 1) / (2 * segments)) / rate for n in range(segments)]
    about = f"{count} frames, {count / rate:.0f} s, {keys} key frames, {path.stat().st_size / 1e6:.0f} MB"
    print(f"\n{name}: {about}, {skippable:.0%} of the frames are no reference")
    frames = f"{name}, {count / rate:.0f} s, {segments} frames"
    everything, needed = decoding(path, wanted, False), decoding(path, wanted, True)
    compare(
        f"{frames}, 1 thread",
        lambda: ours(path, wanted),
        {f"OpenCV {kind}, 1 thread": partial(read, path, wanted, 1) for kind, read in RIVALS.items()},
        lambda found: exact(path, wanted, found),
        f"at most {everything / needed:.2f} × by bare decoding",
    )
    videos = os.cpu_count() or 1
    with ThreadPoolExecutor(videos) as threads:
        compare(
            f"{videos} × {frames}, at once",
            lambda: list(chain(*threads.map(lambda _: ours(path, wanted), range(videos)))),
            {
                f"OpenCV {kind}, default threads": lambda read=read: [
                    one for _ in range(videos) for one in read(path, wanted, 0)
                ]
                for kind, read in RIVALS.items()
            },
            lambda found: exact(path, wanted, found[: len(wanted)]),
            "",
        )


def compare(
    what: str,
    own: Callable[[], list[Pixels]],
    rivals: dict[str, Callable[[], list[Pixels]]],
    exactness: Callable[[list[Pixels]], str],
    bound: str,
) -> None:
    """One row a rival: each of the rounds reads all ways in turn; the ratios are those of the rounds."""
    rounds = [{way: timed(read) for way, read in {"ours": own, **rivals}.items()} for _ in range(ROUNDS)]
    print(f"  {what}: {exactness(rounds[0]['ours'][2])}")
    for rival in rivals:
        processor = statistics.median(one[rival][1] / one["ours"][1] for one in rounds)
        print(f"  {rival}: {processor:.2f} times our CPU time")
        precision = exactness(rounds[0][rival][2])
        more = [] if precision == exactness(rounds[0]["ours"][2]) else [f"OpenCV {precision}"]
        more += [bound] if bound and "seeking" in rival else []
        row(what, rival, [one[rival][0] / one["ours"][0] for one in rounds], "; ".join(more))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--clip", type=Path, action="append", default=[])
    asked = parser.parse_args()
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{asked.segments} middle frames a video; {ROUNDS} rounds; {load}; ratios of wall time to ours")
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "drawn.mp4")
        encode(drawn)
        for clip in (drawn, *asked.clip):
            long = Path(folder, f"long-{clip.stem}.mp4")
            lengthen(clip, long, asked.minutes * 60)
            bench(clip.stem, long, asked.segments)
            long.unlink()


if __name__ == "__main__":
    main()
