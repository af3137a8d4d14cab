"""The packets of a video, listed without their data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass
class PacketTable:
    """The packets of a video stream in decoding order, without their data: one entry a packet in every column.

    pts, dts, durations: in ticks of the stream.
    keys: whether it holds a key frame. shown: False for what an edit list hides.
    damaged: places (0-based) of packets that are cut short, or after which packets are missing.
    truncated: whether the file ends before it should.
    """

    pts: Sequence[int | None] = ()
    dts: Sequence[int | None] = ()
    durations: Sequence[int] = ()
    keys: Sequence[bool] = ()
    shown: Sequence[bool] = ()
    damaged: frozenset[int] = frozenset()
    truncated: bool = False

    @cached_property
    def place(self) -> dict[int | None, int]:
        """Place of each pts."""
        return {pts: n for n, pts in enumerate(self.pts)}

    @property
    def tells_frames(self) -> bool:
        """Whether sorting by pts gives the frames: every pts is there, once, and the first packet is shown first."""
        known = [pts for pts in self.pts if pts is not None]
        once = bool(known) and len(self.place) == len(known) == len(self.pts)
        return once and self.keys[0] and known[0] == min(known)

    def entrance(self, place: int) -> int:
        """Place of the last key frame that is decoded before a frame, or with it, and shown no later than it.

        A frame that follows an open GOP's key frame in the file but is shown before it needs the key frame before.
        """
        tick = self.pts[place]
        for n in range(place, -1, -1):
            pts = self.pts[n]
            if self.keys[n] and pts is not None and tick is not None and pts <= tick:
                return n
        return 0
