"""Exact frames of a video by time or by number, with as little decoding as possible."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.buffer import Buffer
from av.video.frame import PictureType
from av.video.reformatter import Interpolation

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.timeline import MICROSECONDS, Addressing, Timeline, best_effort
from twinset.generators.video.video_file import BrokenMedia, VideoFile, open_video
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder

# Without these flags swscale takes shortcuts that differ with the CPU's instruction set (measured: the mean level of
# a frame by 0.5 between AVX2 and plain C). With them all paths agree bit for bit, and chroma is interpolated.
EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT | Interpolation.FULL_CHR_H_INT


@dataclass(eq=False, slots=True)
class VideoFrame:
    """One decoded frame.

    index: place among the video's frames in presentation order, from 0.
    pts: presentation time in seconds on the player's clock (`Timeline.origin`).
    pixels: (height, width, 3) uint8 RGB, upright.
    """

    index: int
    pts: float
    pixels: Pixels


def find_frames(
    folder: MediaFolder, video: str, addresses: Collection[float], addressing: Addressing
) -> dict[float, tuple[Frame, int] | UnusableImage]:
    """Frames of a video of a folder with their indices, as `read_frames`; each distinct one is one object.

    Raises OSError for trouble of the machine, such as a failing disk.
    """
    size = None
    try:
        stored = folder.find(video)
        if stored is None:
            problem = folder.absent(video, f"no file {video} in {folder.root.name}; add it and build again")
            return dict.fromkeys(addresses, UnusableImage("missing-media", problem, video))
        size = stored.size
        digest, size = sha256_of_file(stored.path)
        try:
            read = read_frames(stored.path, addresses, addressing)
        except BrokenMedia as error:
            # FFmpeg reports a failing disk as it reports a broken file. Plain reading tells: it raises here again.
            sha256_of_file(stored.path)
            return dict.fromkeys(addresses, UnusableImage("broken-media", str(error), video, size))
    except EscapesRoot as error:
        return dict.fromkeys(addresses, UnusableImage("unsafe-path", str(error)))
    except OSError as error:
        return dict.fromkeys(addresses, UnusableImage.refused(error, video, size))
    source = MediaFile(stored.name, size, digest)
    decoded = {frame.index: frame for frame in read.values() if isinstance(frame, VideoFrame)}
    frames = {n: Frame(f"{video}#{n}", frame.pixels, frame.pts, source) for n, frame in decoded.items()}
    return {
        at: (frames[frame.index], frame.index) if isinstance(frame, VideoFrame) else frame for at, frame in read.items()
    }


def read_frames(
    path: Path, addresses: Collection[float], addressing: Addressing
) -> dict[float, VideoFrame | UnusableImage]:
    """Decode the wanted frames of a video, each once; addresses that mean the same frame share one object.

    addressing ``seconds``: the frame nearest by pts, on the player's clock (`Timeline.nearest`); ``numbers``: the frame
    that ``ffmpeg -i VIDEO %06d.png`` writes under that number (`Timeline.numbered`).

    An address beyond the end gives no frame. A frame's bytes do not depend on what else is asked for: every frame
    equals that of a sequential decode. One thread a video, since shards are the parallelism (and frame threads would
    decode beyond what is wanted). Raises `BrokenMedia` where the file, or what has to be decoded of it, is damaged.
    """
    with open_video(path) as file:
        timeline = _timeline(file)
        find = timeline.nearest if addressing == "seconds" else timeline.numbered
        meant = {at: find(at) for at in addresses}
        pixels = _take(file, timeline.ticks, {index for index in meant.values() if index is not None})
    frames = {index: VideoFrame(index, timeline.seconds(index), picture) for index, picture in pixels.items()}
    last = len(timeline.ticks) - 1
    end = f"the last of {last + 1} frames is at {timeline.seconds(last):.3f} s"
    return {
        at: UnusableImage("beyond-end", f"{path.name}: nothing at {at:g}; {end}") if index is None else frames[index]
        for at, index in meant.items()
    }


def frame_times(path: Path) -> list[float]:
    """Presentation times (s, player's clock) of a video's frames, ascending; decodes only where packets do not tell.

    Raises `BrokenMedia` as `read_frames`.
    """
    with open_video(path) as file:
        timeline = _timeline(file)
        return [timeline.seconds(index) for index in range(len(timeline.ticks))]


def _timeline(file: VideoFile) -> Timeline:
    """When the frames of a video are shown; raises `BrokenMedia` where there is none."""
    if file.tells_frames:
        # MP4 gives durations in decoding order: where frames are reordered they say nothing about the shown frame, and
        # ffmpeg up to 5.1 takes none from there.
        reordered = "mp4" in file.format and any(packet.pts != packet.dts for packet in file.listed)
        shown = sorted((packet.pts or 0, packet.duration) for packet in file.listed if packet.shown)
        ticks, durations = [tick for tick, _ in shown], [0 if reordered else duration for _, duration in shown]
    else:
        frames = [(frame.pts, frame.dts, frame.duration or 0) for frame in file.decode(file.packets())]
        ticks, durations = best_effort([(pts, dts) for pts, dts, _ in frames]), [duration for *_, duration in frames]
    if not ticks:
        raise file.broken("no frame can be decoded")
    time_base = file.stream.time_base or Fraction(1, MICROSECONDS)
    first = ticks[0] * time_base
    origin = min(first, Fraction(file.container.start_time or 0, MICROSECONDS))
    if first - origin <= Fraction(1, MICROSECONDS):
        origin = first  # the container rounds to microseconds
    rate, lone = file.stream.guessed_rate or Fraction(25), len(file.container.streams) == 1
    return Timeline(ticks, durations, time_base, origin, rate, lone)


def _take(file: VideoFile, ticks: Sequence[int], wanted: Collection[int]) -> dict[int, Pixels]:
    """Pixels of the wanted frames by their indices, the same whatever else is wanted. ticks: of all frames."""
    if not file.tells_frames:
        frames = islice(enumerate(file.decode(file.packets())), max(wanted, default=-1) + 1)
        return {index: upright_rgb(frame) for index, frame in frames if index in wanted}
    runs = defaultdict[int, set[int]](set)
    for tick in {ticks[index] for index in wanted}:
        # What follows an open GOP's key frame in the file but is shown before it needs the key frame before.
        runs[max(key for key in file.keys if key <= tick)].add(tick)
    pixels: dict[int, Pixels] = {}
    for start, run in sorted(runs.items()):
        with suppress(BrokenMedia, av.FFmpegError):  # which decoding from the start tells
            pixels |= _run(file, start, run)
    # Rare and slow: where a key frame is not a true entrance (gradual refresh, wrong labels), or something is damaged.
    if left := {ticks[index] for index in wanted} - pixels.keys():
        pixels |= {frame.pts or 0: upright_rgb(frame) for frame in file.decode(file.packets()) if frame.pts in left}
        if left - pixels.keys():
            raise file.broken("not every frame can be decoded")
    return {index: pixels[ticks[index]] for index in wanted}


def _run(file: VideoFile, start: int, wanted: Collection[int]) -> dict[int, Pixels]:
    """Frames by tick, decoded from the key frame at ``start``; none where the decoder cannot begin with it."""
    frames = file.decode(file.packets_from(start, wanted), start)
    first = next(frames, None)
    if first is None or first.pts != start or not first.key_frame or first.pict_type != PictureType.I:
        return {}
    return {frame.pts or 0: upright_rgb(frame) for frame in chain([first], frames) if frame.pts in wanted}


def upright_rgb(frame: av.VideoFrame) -> Pixels:
    """(height, width, 3) uint8 RGB, full range, turned as the frame's display matrix says.

    Matrix and range are the stream's own; as in ffmpeg, BT.601 where it names none. Raises `av.FFmpegError` for
    pixel formats that swscale cannot read.
    """
    pixels: Pixels = np.asarray(frame.to_ndarray(format="rgb24", interpolation=EXACT, threads=1), dtype=np.uint8)
    # PyAV's annotation knows of motion vectors only.
    matrix = cast(Mapping[str, Buffer], frame.side_data).get("DISPLAYMATRIX")
    if matrix is None:
        return pixels
    # 3 × 3 in libavutil's layout: x' = m00 x + m10 y, y' = m01 x + m11 y. Quarter turns and mirrors, which is all that
    # cameras write; any other angle goes to the nearest of these.
    (across, b), (c, down) = np.frombuffer(bytes(matrix), np.int32).reshape(3, 3)[:2, :2].tolist()
    if abs(b) + abs(c) > abs(across) + abs(down):
        pixels = pixels.transpose(1, 0, 2)
        across, down = c, b
    return np.ascontiguousarray(pixels[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
