"""Decoding wanted frames of a video, each only if no packet since its key frame is damaged or missing."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

import av
import numpy as np
from av.buffer import Buffer
from av.video.frame import PictureType
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from twinset.generators.video.container.packets import PacketTable
from twinset.generators.video.container.video_file import PlacedPacket, VideoFile
from twinset.shards.kinds.samples import Pixels

# Decoders that leave out frames to which no other refers, packet by packet, without touching the rest.
SKIPS_NON_REFERENCE = frozenset({"h264", "hevc", "vp9"})
# Without these flags swscale takes shortcuts that differ with the CPU's instruction set (measured: the mean level of
# a frame by 0.5 between AVX2 and plain C). With them all paths agree bit for bit, and chroma is interpolated.
EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT | Interpolation.FULL_CHR_H_INT


@dataclass(frozen=True, slots=True)
class ListedFrame:
    """A decoded frame without its pixels.

    place: of its packet in the `PacketTable`. pts, dts, duration: in ticks.
    intact: whether no packet since its key frame is damaged or missing.
    """

    place: int
    pts: int | None
    dts: int | None
    duration: int
    intact: bool


def take_frames(file: VideoFile, table: PacketTable, places: Collection[int], direct: bool) -> dict[int, Pixels]:
    """Decode the frames of some packets; those that are not intact are left out.

    Args:
        places: of the packets in ``table``.
        direct: whether to enter the file at the key frame before each frame, which needs true timestamps.

    Returns:
        Pixels by place, the same whatever else is wanted.
    """
    found: dict[int, Pixels] = {}
    if direct:
        runs: dict[int, set[int]] = {}
        for place in places:
            runs.setdefault(table.entrance(place), set()).add(place)
        for entrance, wanted in sorted(runs.items()):
            found |= _run(file, table, entrance, wanted)
    # Also where a key frame is not a true entrance (gradual refresh, wrong labels): rare and slow.
    if left := set(places) - found.keys():
        found |= decode_from_start(file, table, left)[1]
    return found


def decode_from_start(
    file: VideoFile, table: PacketTable, wanted: Collection[int] = ()
) -> tuple[list[ListedFrame], dict[int, Pixels]]:
    """Decode a video in order: the whole, or up to the last wanted place.

    Returns:
        The frames in presentation order, and the pixels of the wanted places that are intact.
    """
    pixels, shown = {}, []
    damaged = set(table.damaged)
    last = max(wanted, default=len(table.pts) - 1)
    file.rewind()
    for place, frame in file.decode(islice(file.packets(), last + 1), damaged):
        if place in wanted:
            pixels[place] = upright_rgb(frame)
        key = frame.key_frame and frame.pict_type == PictureType.I
        shown.append((place, frame.pts, frame.dts, frame.duration or 0, key))
    frames: list[ListedFrame] = []
    before: set[int] = set()
    first = min(damaged, default=math.inf)
    for place, pts, dts, duration, key in shown:
        if key and place not in damaged:
            # What is decoded after a key frame but shown before it may refer to what came earlier; nothing else may.
            first = min((other for other in damaged if other > place and other not in before), default=math.inf)
        frames.append(ListedFrame(place, pts, dts, duration, place < first))
        before.add(place)
    return frames, {frame.place: pixels[frame.place] for frame in frames if frame.intact and frame.place in pixels}


def _run(file: VideoFile, table: PacketTable, entrance: int, places: Collection[int]) -> dict[int, Pixels]:
    """Frames by place, decoded from one key frame on; none where the decoder cannot start at it."""
    wanted = set(places)
    while True:
        found: dict[int, Pixels] = {}
        damaged: set[int] = set()
        entered = entrance == 0
        for place, frame in file.decode(_feed(file, table, entrance, wanted), damaged):
            entered = entered or (place == entrance and frame.pict_type == PictureType.I)
            if entered and place in wanted:
                found[place] = upright_rgb(frame)
        # What is shown before the key frame refers to frames that were not decoded, and no wanted frame refers to it.
        damaged |= table.damaged
        counted = (p for p in damaged if p >= entrance and (table.pts[p] or 0) >= (table.pts[entrance] or 0))
        first = min(counted, default=math.inf)
        if first not in wanted or file.codec_name not in SKIPS_NON_REFERENCE:
            return {place: pixels for place, pixels in found.items() if place < first}
        wanted.discard(int(first))  # perhaps no frame refers to it: then it is left out now, and the others are intact


def _feed(file: VideoFile, table: PacketTable, entrance: int, wanted: Collection[int]) -> Iterator[PlacedPacket]:
    """Packets from a key frame to the last wanted one; the decoder leaves out others that no frame refers to."""
    needed = {entrance, *wanted}
    skips = file.codec_name in SKIPS_NON_REFERENCE
    last = max(needed)
    for place, packet in file.packets_from(table, entrance):
        file.stream.codec_context.skip_frame = "NONREF" if skips and place not in needed else "DEFAULT"
        yield place, packet
        if place >= last:
            return


def upright_rgb(frame: av.VideoFrame) -> Pixels:
    """(height, width, 3) uint8 RGB, full range, turned as the frame's display matrix says.

    Matrix and range are the stream's own; as in ffmpeg, BT.601 where it names none. Raises `av.FFmpegError` for
    pixel formats that swscale cannot read.
    """
    pixels: Pixels = np.asarray(frame.to_ndarray(format="rgb24", interpolation=EXACT, threads=1), dtype=np.uint8)
    # PyAV's annotation knows of motion vectors only.
    matrix = cast(Mapping[str, Buffer], frame.side_data).get("DISPLAYMATRIX")
    return pixels if matrix is None else turned(pixels, np.frombuffer(bytes(matrix), np.int32).reshape(3, 3))


def turned(pixels: Pixels, matrix: NDArray[np.int32]) -> Pixels:
    """Apply a display matrix (3 × 3, libavutil's layout: x' = m00 x + m10 y, y' = m01 x + m11 y) to an image.

    Quarter turns and mirrors, which is all that cameras write; any other angle goes to the nearest of these.
    """
    (a, b), (c, d) = (int(value) for value in matrix[0, :2]), (int(value) for value in matrix[1, :2])
    if abs(b) + abs(c) > abs(a) + abs(d):
        pixels = pixels.transpose(1, 0, 2)
        across, down = c, b
    else:
        across, down = a, d
    if across < 0:
        pixels = pixels[:, ::-1]
    if down < 0:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)
