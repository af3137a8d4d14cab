"""Exact frames of a video by time or by number, with as little decoding as possible."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import av
from av.video.frame import PictureType

from generators.video.packets import PacketTable
from generators.video.pixels import RgbConverter
from generators.video.timeline import Timeline, best_effort
from generators.video.video_file import MICROSECONDS, BrokenMedia, VideoFile, VideoPacket
from shards.kinds.samples import Pixels

# Codecs whose every packet is one shown frame with the packet's own pts, so that demuxing tells all there is to know.
# Others hide or pack frames (VP8, MPEG-4), and AVI has no pts: there frames are decoded from the start, twice (to list
# them, then to take the wanted ones).
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "vp9", "av1"})
WITHOUT_PTS = frozenset({"avi"})
# Decoders that leave out frames to which no other refers, packet by packet, without touching the rest.
SKIPS_NON_REFERENCE = frozenset({"h264", "hevc", "vp9"})

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


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why an address gave no frame: it lies beyond the end, or the video is damaged there. detail: for people."""

    reason: Literal["beyond-end", "broken-media"]
    detail: str


def read_frames(
    path: Path, addresses: Collection[float], addressing: Literal["seconds", "numbers"]
) -> dict[float, VideoFrame | Unavailable]:
    """Decode the wanted frames of a video, each once; addresses that mean the same frame share one object.

    addressing ``seconds``: the frame nearest by pts, on the player's clock (`Timeline.nearest`); ``numbers``: the frame
    that ``ffmpeg -i VIDEO %06d.png`` writes under that number (`Timeline.numbered`).

    A frame's bytes do not depend on what else is asked for: every frame equals that of a sequential decode. One thread
    a video, since shards are the parallelism (and frame threads would decode beyond what is wanted). Raises
    `BrokenMedia` when the file as a whole cannot be used, MemoryError when the machine has none left.
    """
    try:
        with VideoFile(path) as file:
            return _read(file, addresses, addressing)
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


def _read(file: VideoFile, addresses: Collection[float], addressing: str) -> dict[float, VideoFrame | Unavailable]:
    table = file.scan()
    stamped = file.container.format.name not in WITHOUT_PTS and table.tells_frames
    direct = stamped and file.codec_name in ONE_FRAME_A_PACKET
    timeline = _timeline_of_packets(file, table) if direct else _timeline_of_frames(file)
    if not timeline.ticks:
        raise BrokenMedia(f"{file.path.name}: no frame can be decoded; get the file anew")
    chosen = timeline.nearest(addresses) if addressing == "seconds" else timeline.numbered(addresses)
    wanted = sorted(set(chosen.values()))
    decoded = _take_directly(file, table, timeline, wanted) if direct else _take_in_order(file, wanted)
    frames = {index: VideoFrame(index, timeline.seconds(index), pixels) for index, pixels in decoded.items()}
    count = len(timeline.ticks)
    last = f"the last of {count} frames is at {timeline.seconds(count - 1):.3f} s"
    cut_off = chosen.keys() < set(addresses) and (table.truncated or file.falls_short())
    result: dict[float, VideoFrame | Unavailable] = {}
    for at in addresses:
        if at in chosen:
            damaged = f"{file.path.name}: the frame at {at:g} is damaged; get the file anew"
            result[at] = frames.get(chosen[at]) or Unavailable("broken-media", damaged)
        elif cut_off:
            cut = f"{file.path.name}: cut off before {at:g} ({last}); get the file anew"
            result[at] = Unavailable("broken-media", cut)
        else:
            result[at] = Unavailable("beyond-end", f"{file.path.name}: nothing at {at:g}; {last}")
    return result


def _timeline_of_packets(file: VideoFile, table: PacketTable) -> Timeline:
    # MP4 gives durations in decoding order: where frames are reordered they say nothing about the shown frame, and
    # ffmpeg up to 5.1 takes none from there.
    reordered = "mp4" in file.container.format.name and table.pts != table.dts
    columns = zip(table.pts, table.durations, table.shown, strict=True)
    frames = sorted(
        (pts, 0 if reordered else duration) for pts, duration, shown in columns if shown and pts is not None
    )
    return _timeline(file, [pts for pts, _ in frames], [duration for _, duration in frames])


def _timeline_of_frames(file: VideoFile) -> Timeline:
    file.rewind()
    stamps = [((frame.pts, frame.dts), frame.duration or 0) for frame in file.decode(file.packets())]
    return _timeline(file, best_effort([stamp for stamp, _ in stamps]), [duration for _, duration in stamps])


def _timeline(file: VideoFile, ticks: list[int], durations: list[int]) -> Timeline:
    time_base = file.stream.time_base or Fraction(1, MICROSECONDS)
    first = ticks[0] * time_base if ticks else Fraction(0)
    origin = min(first, Fraction(file.container.start_time or 0, MICROSECONDS))
    if first - origin <= Fraction(1, MICROSECONDS):
        origin = first  # the container rounds to microseconds
    lone = len(file.container.streams) == 1
    return Timeline(ticks, durations, time_base, origin, file.stream.guessed_rate, lone)


def _take_in_order(file: VideoFile, wanted: list[int]) -> dict[int, Pixels]:
    """Frames by index, decoding from the start up to the last one."""
    found: dict[int, Pixels] = {}
    if wanted:
        convert, left = RgbConverter(), set(wanted)
        file.rewind()
        for index, frame in enumerate(file.decode(file.packets())):
            if index in left and not frame.is_corrupt:
                found[index] = convert(frame)
            if index == wanted[-1]:
                break
    return found


def _take_directly(file: VideoFile, table: PacketTable, timeline: Timeline, wanted: list[int]) -> dict[int, Pixels]:
    """Frames by index, entering the file once for every key frame that leads to some of them."""
    convert = RgbConverter()
    runs: dict[int, set[int]] = {}
    for index in wanted:
        tick = timeline.ticks[index]
        if tick not in table.damaged:
            runs.setdefault(table.entrance(tick), set()).add(tick)
    found: dict[int, Pixels] = {}
    for entrance, ticks in sorted(runs.items()):
        skip = file.codec_name in SKIPS_NON_REFERENCE
        # From ever earlier only where a key frame is no true entrance (gradual refresh, wrong labels): rare and slow.
        for start, skipping in ((entrance, skip), (table.key_before(entrance), False), (0, False)):
            left = ticks - found.keys()
            if left:
                found |= _run(file, table, start, left, skipping, convert)
    return {index: found[tick] for index in wanted if (tick := timeline.ticks[index]) in found}


def _run(
    file: VideoFile, table: PacketTable, entrance: int, ticks: set[int], skipping: bool, convert: RgbConverter
) -> dict[int, Pixels]:
    """Frames by tick, decoded from one key frame on; none where the decoder cannot start at it.

    skipping: frames that no other refers to are not decoded unless wanted.
    """
    start = table.pts[entrance]
    needed = {start, *ticks}
    entered = entrance == 0
    found: dict[int, Pixels] = {}
    for frame in file.decode(_feed(file, table, entrance, needed, skipping)):
        entered = entered or (frame.pts == start and frame.pict_type == PictureType.I)
        if entered and frame.pts in ticks and not frame.is_corrupt:
            found[frame.pts] = convert(frame)
    return found


def _feed(
    file: VideoFile, table: PacketTable, entrance: int, needed: set[int | None], skipping: bool
) -> Iterator[VideoPacket]:
    last = max(table.place[tick] for tick in needed)
    for packet in file.packets_from(table, entrance):
        file.stream.codec_context.skip_frame = "NONREF" if skipping and packet.pts not in needed else "DEFAULT"
        yield packet
        if table.place.get(packet.pts, -1) >= last:
            return
