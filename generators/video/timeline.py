"""Which frame of a video an address means: seconds on a player's clock, or the numbers of an ffmpeg frame dump."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

#: A wanted time may lie this long (s) after the end of the last frame: annotators' durations are rounded.
END_TOLERANCE = Fraction(1, 2)
MICROSECONDS = 1_000_000
#: How a frame is named: a time in seconds, or the number of a dumped frame.
Addressing = Literal["seconds", "numbers"]


@dataclass(frozen=True)
class Timeline:
    """The frames of a video in presentation order, without pixels.

    ticks: presentation time of each frame in units of ``time_base`` (s), as the file says it, ascending; at least one.
    durations: of each frame, same units, 0 where the file does not say (the dump takes it for one frame at ``rate``).
    origin: what the file's clock shows (s) when a player shows 0: the start of its earliest stream, which is the
    first frame where there is no earlier sound. It is where ``ffmpeg -ss`` counts from, too.
    rate: frames a second that libavformat guesses.
    lone: whether the file holds nothing but this video stream.
    """

    ticks: Sequence[int]
    durations: Sequence[int]
    time_base: Fraction
    origin: Fraction
    rate: Fraction
    lone: bool

    def seconds(self, index: int) -> float:
        """Presentation time of a frame (s) on the player's clock."""
        return float(self.ticks[index] * self.time_base - self.origin)

    def nearest(self, seconds: float) -> int | None:
        """Index of the frame nearest to a time (s, player's clock); the earlier one of two as near.

        Times are taken to the microsecond, and a tie is what that rounding can have moved off the exact middle, so that
        neither binary fractions nor rates such as 30 a second decide ties. None for a time later than
        `END_TOLERANCE` after the last frame ends, and for what is no time at all (NaN, infinity).
        """
        if not math.isfinite(seconds):
            return None
        tick = (Fraction(round(seconds * MICROSECONDS), MICROSECONDS) + self.origin) / self.time_base
        right = bisect_left(self.ticks, tick)
        if right == len(self.ticks):
            lasts = self.durations[-1] * self.time_base or 1 / self.rate
            return right - 1 if (tick - self.ticks[-1]) * self.time_base - lasts <= END_TOLERANCE else None
        rounding = Fraction(1, MICROSECONDS) / self.time_base  # half a microsecond towards one, away from the other
        return right - 1 if right and tick - self.ticks[right - 1] <= self.ticks[right] - tick + rounding else right

    def numbered(self, number: float) -> int | None:
        """Index of the frame that ``ffmpeg -i VIDEO %06d.png`` writes under a number (from 1); None if it has no such.

        Action Genome's frames are named by such a dump (its ``tools/dump_frames.py``).
        """
        frames, ends = self._dump
        place = bisect_left(ends, number) if number >= 1 and float(number).is_integer() else len(ends)
        return frames[place] if place < len(ends) else None

    @cached_property
    def _dump(self) -> tuple[list[int], list[int]]:
        """Indices of the dumped frames in order, and the number of the last copy of each."""
        dumped = list(self._dumped())
        return [index for index, _ in dumped], list(accumulate(copies for _, copies in dumped))

    def _dumped(self) -> Iterator[tuple[int, int]]:
        """Frames as ffmpeg's image writer takes them: (index, copies), in order.

        The image writer asks for a constant frame rate: ffmpeg (2.8, which made the dump, to 5.1) repeats and drops
        frames so that output n lies at n / rate. Its rules, in units of output frames; ``drift`` is how far a frame is
        ahead of the slot that it would fall into.
        """
        to_slots = self.time_base * self.rate
        # ffmpeg rounds to a fraction of a slot and adds a little, against exact midpoints.
        grid = 1 << min(max(29 - (self.rate.numerator.bit_length() - 1), 0), 16)
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
            previous = previous if index else 0
            yield index - 1, previous
            yield index, copies - previous
            slot += copies
        yield len(self.ticks) - 1, sorted(repeats)[1]


def best_effort(stamps: Sequence[tuple[int | None, int | None]]) -> list[int]:
    """One ascending tick a decoded frame, in order of output, from its (pts, dts).

    AVI has no pts, and some files have wrong ones: whichever of the two is missing or goes backwards less often is
    believed, as players do. Where it still fails, a frame comes one tick after the one before.
    """

    def faults(column: Sequence[int | None]) -> int:
        known = [value for value in column if value is not None]
        return len(column) - len(known) + sum(after <= before for before, after in pairwise(known))

    ticks: list[int] = []
    for tick in min(([pts for pts, _ in stamps], [dts for _, dts in stamps]), key=faults):
        if ticks and (tick is None or tick <= ticks[-1]):
            tick = ticks[-1] + 1
        ticks.append(tick or 0)
    return ticks


def _round_away(value: Fraction) -> int:
    """Nearest integer, halves away from zero, as libavutil rounds."""
    return int(value + Fraction(1, 2)) if value >= 0 else -int(-value + Fraction(1, 2))
