"""Exact frames of a video by time or by number, with as little decoding as possible."""

import mmap
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import Literal

import av

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.image_files import UnusableImage
from twinset.generators.video.decoding import ListedFrame, Timeline, best_effort, decode_from_start, take_frames
from twinset.generators.video.video_file import MICROSECONDS, BrokenMedia, PacketTable, VideoFile

# Codecs whose every packet is one shown frame with the packet's own pts, so that demuxing tells all there is to know.
# Others hide or pack frames (VP8, MPEG-4), and AVI has no pts: there frames are decoded from the start, twice (to list
# them, then to take the wanted ones).
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "vp9", "av1"})
WITHOUT_PTS = frozenset({"avi"})

LIBAV_MOST = (1 << 31) - 1  # bytes; av_malloc refuses more, however much memory there is


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


def read_frames(
    path: Path, addresses: Collection[float], addressing: Literal["seconds", "numbers"]
) -> dict[float, VideoFrame | UnusableImage]:
    """Decode the wanted frames of a video, each once; addresses that mean the same frame share one object.

    addressing ``seconds``: the frame nearest by pts, on the player's clock (`Timeline.nearest`); ``numbers``: the frame
    that ``ffmpeg -i VIDEO %06d.png`` writes under that number (`Timeline.numbered`).

    An address beyond the end (``beyond-end``) or where the video is damaged (``broken-media``) gives no frame.

    A frame's bytes do not depend on what else is asked for: every frame equals that of a sequential decode. One thread
    a video, since shards are the parallelism (and frame threads would decode beyond what is wanted). Raises
    `BrokenMedia` when the file as a whole cannot be used, MemoryError when the machine has none left.
    """
    with _opened(path) as file:
        return _read(file, addresses, addressing)


def frame_times(path: Path) -> list[float]:
    """Presentation times (s, player's clock) of a video's frames, ascending; decodes only where packets do not tell.

    Raises `BrokenMedia` as `read_frames`.
    """
    with _opened(path) as file:
        _, _, timeline = _listed(file)
        return [timeline.seconds(index) for index in range(len(timeline.ticks))]


@contextmanager
def _opened(path: Path) -> Iterator[VideoFile]:
    """An open video; what libav raises for it becomes `BrokenMedia`."""
    try:
        with VideoFile(path) as file:
            yield file
    except av.error.MemoryError as error:
        if not _memory_is_left():
            raise
        raise BrokenMedia(f"{path.name}: asks for more memory than any video needs; get the file anew") from error
    except av.FFmpegError as error:
        raise BrokenMedia(f"{path.name}: {error.strerror or error}; get the file anew") from error


def _memory_is_left() -> bool:
    """Whether the machine would still give what libav may ask for at once: then it was the file that asked for more."""
    try:
        mmap.mmap(-1, LIBAV_MOST).close()  # reserved, never touched
    except (OSError, MemoryError):
        return False
    return True


def _listed(file: VideoFile) -> tuple[PacketTable, list[ListedFrame], Timeline]:
    """The frames of a video without pixels; none are listed where the packets tell them without decoding.

    Raises `BrokenMedia` where there is no frame.
    """
    table = file.scan()
    stamped = file.container.format.name not in WITHOUT_PTS and table.tells_frames
    direct = stamped and file.codec_name in ONE_FRAME_A_PACKET
    frames = [] if direct else decode_from_start(file, table)[0]
    if direct:
        timeline = _timeline_of_packets(file, table)
    else:
        ticks = best_effort([(frame.pts, frame.dts) for frame in frames])
        timeline = _timeline(file, ticks, [frame.duration for frame in frames])
    if not timeline.ticks:
        raise BrokenMedia(f"{file.path.name}: no frame can be decoded; get the file anew")
    return table, frames, timeline


def _read(file: VideoFile, addresses: Collection[float], addressing: str) -> dict[float, VideoFrame | UnusableImage]:
    table, listed, timeline = _listed(file)
    direct = not listed
    chosen = timeline.nearest(addresses) if addressing == "seconds" else timeline.numbered(addresses)
    count = len(timeline.ticks)
    near = {at: n for at, n in chosen.items() if timeline.is_within_a_frame(n, at, addressing)}
    # Of an intact file the nearest frame counts, however far it is. Else the one meant may be missing.
    late = any(chosen.get(at, count - 1) == count - 1 for at in addresses if at not in near)
    cut_off = late and (table.truncated or file.falls_short())
    holes = bool(table.damaged) or not all(frame.intact for frame in listed)
    near |= {at: n for at, n in chosen.items() if not holes and not (cut_off and n == count - 1)}
    places = {n: table.place[timeline.ticks[n]] if direct else listed[n].place for n in near.values()}
    pixels = take_frames(file, table, set(places.values()), direct)
    frames = {n: VideoFrame(n, timeline.seconds(n), pixels[place]) for n, place in places.items() if place in pixels}
    last = f"the last of {count} frames is at {timeline.seconds(count - 1):.3f} s"
    result: dict[float, VideoFrame | UnusableImage] = {}
    for at in addresses:
        if at in near and near[at] in frames:
            result[at] = frames[near[at]]
        elif at in chosen:
            damaged = f"{file.path.name}: the frame at {at:g} is damaged; get the file anew"
            result[at] = UnusableImage("broken-media", damaged)
        elif cut_off:
            cut = f"{file.path.name}: cut off before {at:g} ({last}); get the file anew"
            result[at] = UnusableImage("broken-media", cut)
        else:
            result[at] = UnusableImage("beyond-end", f"{file.path.name}: nothing at {at:g}; {last}")
    return result


def _timeline_of_packets(file: VideoFile, table: PacketTable) -> Timeline:
    # MP4 gives durations in decoding order: where frames are reordered they say nothing about the shown frame, and
    # ffmpeg up to 5.1 takes none from there.
    reordered = "mp4" in file.container.format.name and table.pts != table.dts
    ticks = sorted(tick for tick in compress(table.pts, table.shown) if tick is not None)
    durations = [0 if reordered else table.durations[table.place[tick]] for tick in ticks]
    return _timeline(file, ticks, durations)


def _timeline(file: VideoFile, ticks: list[int], durations: list[int]) -> Timeline:
    time_base = file.stream.time_base or Fraction(1, MICROSECONDS)
    first = ticks[0] * time_base if ticks else Fraction(0)
    origin = min(first, Fraction(file.container.start_time or 0, MICROSECONDS))
    if first - origin <= Fraction(1, MICROSECONDS):
        origin = first  # the container rounds to microseconds
    lone = len(file.container.streams) == 1
    return Timeline(ticks, durations, time_base, origin, file.stream.guessed_rate, lone)
