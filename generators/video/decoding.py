"""Which frame of a video an address means: seconds on a player's clock, or the numbers of an ffmpeg frame dump.

Wanted frames are decoded, each only if no packet since its key frame is damaged or missing.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice, pairwise
from typing import cast

import av
import numpy as np
from av.buffer import Buffer
from av.video.frame import PictureType
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.video.video_file import PacketTable, PlacedPacket, VideoFile

#: A wanted time may lie this long (s) after the end of the last frame: annotators' durations are rounded.
END_TOLERANCE = Fraction(1, 2)
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frames of a video in presentation order, without pixels.

    ticks: presentation time of each frame in units of ``time_base`` (s), as the file says it, ascending.
    durations: of each frame, same units, 0 where the file does not say (the dump takes it for one frame at ``rate``).
    origin: what the file's clock shows (s) when a player shows 0: the start of its earliest stream, which is the
    first frame where there is no earlier sound. It is where ``ffmpeg -ss`` counts from, too.
    rate: frames a second that libavformat guesses, None where it cannot.
    lone: whether the file holds nothing but this video stream.
    """

    ticks: Sequence[int]
    durations: Sequence[int]
    time_base: Fraction
    origin: Fraction
    rate: Fraction | None
    lone: bool

    def seconds(self, index: int) -> float:
        """Presentation time of a frame (s) on the player's clock."""
        return float(self.ticks[index] * self.time_base - self.origin)

    def is_within_a_frame(self, index: int, address: float, addressing: str) -> bool:
        """Whether an address lies as near to a frame as it would if no frame were missing there."""
        seconds = address if addressing == "seconds" else float((Fraction(address) - 1) / self._rate)
        lasts = max(self.durations[index] * self.time_base, 1 / self._rate)
        return abs(seconds - self.seconds(index)) <= 0.75 * lasts  # half of it, and room for rounded timestamps

    def nearest(self, wanted: Collection[float]) -> dict[float, int]:
        """Index of the frame nearest to each wanted time (s, player's clock); the earlier one of two as near.

        Times are taken to the microsecond, and a tie is what that rounding can have moved off the exact middle, so that
        neither binary fractions nor rates such as 30 a second decide ties. Left out: times later than
        `END_TOLERANCE` after the last frame ends, and what is no time at all (NaN, infinity).
        """
        rounding = Fraction(1, MICROSECONDS) / self.time_base  # half a microsecond towards one, away from the other
        found = {}
        for seconds in wanted:
            if not math.isfinite(seconds) or not self.ticks:
                continue
            tick = (Fraction(round(seconds * MICROSECONDS), MICROSECONDS) + self.origin) / self.time_base
            right = bisect_left(self.ticks, tick)
            if right == len(self.ticks):
                lasts = self.durations[-1] * self.time_base or 1 / self._rate
                if (tick - self.ticks[-1]) * self.time_base - lasts > END_TOLERANCE:
                    continue
            beyond = right == len(self.ticks)
            if beyond or (right and tick - self.ticks[right - 1] <= self.ticks[right] - tick + rounding):
                right -= 1
            found[seconds] = right
        return found

    def numbered(self, wanted: Collection[float]) -> dict[float, int]:
        """Index of the frame that ``ffmpeg -i VIDEO %06d.png`` writes under each wanted number (from 1).

        Left out: numbers that the dump does not have. Action Genome's frames are named by such a dump (its
        ``tools/dump_frames.py``).
        """
        dumped = list(self._dumped())
        ends = list(accumulate(copies for _, copies in dumped))  # the number of each frame's last copy
        places = {number: bisect_left(ends, number) for number in wanted if number >= 1 and float(number).is_integer()}
        return {number: dumped[place][0] for number, place in places.items() if place < len(dumped)}

    @property
    def _rate(self) -> Fraction:
        return self.rate or Fraction(25)

    def _dumped(self) -> Iterator[tuple[int, int]]:
        """Frames as ffmpeg's image writer takes them: (index, copies), in order.

        The image writer asks for a constant frame rate: ffmpeg (2.8, which made the dump, to 5.1) repeats and drops
        frames so that output n lies at n / rate. Its rules, in units of output frames; ``drift`` is how far a frame is
        ahead of the slot that it would fall into.
        """
        rate = self._rate
        to_slots = self.time_base * rate
        # ffmpeg rounds to a fraction of a slot and adds a little, against exact midpoints.
        grid = 1 << min(max(29 - (rate.numerator.bit_length() - 1), 0), 16)
        slot, repeats = 0, [0, 0, 0]
        for index, (tick, duration) in enumerate(zip(self.ticks, self.durations, strict=True)):
            at = _round_away((tick - self.origin / self.time_base) * to_slots * grid) / grid
            at += math.copysign(2.0**-17, at) if at else 0.0
            length = float(round(duration * to_slots)) or 1.0
            drift = at - slot
            end = drift + length
            if drift < 0 < end:
                drift = 0.0
            if self.lone and index == 0 and drift >= 0.5:
                slot, drift, end = round(at), 0.0, length  # with sound before it, the first frame is repeated instead
            copies, previous = 1, 0
            if end < -1.1:
                copies = 0
            elif end > 1.1:
                copies = round(end)
                if drift > 1.1:
                    previous = min(round(drift - 0.6), copies)
            repeats = [previous, *repeats[:2]]
            if index and previous:
                yield index - 1, previous
                yield index, copies - previous
            else:
                yield index, copies
            slot += copies
        if self.ticks:
            yield len(self.ticks) - 1, sorted(repeats)[1]


def best_effort(stamps: Sequence[tuple[int | None, int | None]]) -> list[int]:
    """One ascending tick a decoded frame, in order of output, from its (pts, dts).

    AVI has no pts, and some files have wrong ones: whichever of the two is missing or goes backwards less often is
    believed, as players do. Where it still fails, a frame comes one tick after the one before.
    """

    def faults(column: Sequence[int | None]) -> int:
        known = [value for value in column if value is not None]
        return len(column) - len(known) + sum(after <= before for before, after in pairwise(known))

    pts, dts = [pts for pts, _ in stamps], [dts for _, dts in stamps]
    ticks: list[int] = []
    for tick in pts if faults(pts) <= faults(dts) else dts:
        if ticks and (tick is None or tick <= ticks[-1]):
            tick = ticks[-1] + 1
        ticks.append(tick or 0)
    return ticks


def _round_away(value: Fraction) -> int:
    """Nearest integer, halves away from zero, as libavutil rounds."""
    return int(value + Fraction(1, 2)) if value >= 0 else -int(-value + Fraction(1, 2))


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
