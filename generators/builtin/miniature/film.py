"""How a play is filmed: frame rate, container, and the oddities of real files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from generators.builtin.miniature.encode import write_video
from shards.kinds.samples import Pixels


@dataclass(frozen=True, slots=True)
class Film:
    """One video to be written.

    picture: seconds → (240, 320, 3) RGB. seconds: its length. rate: frames a second. suffix: ``.mp4`` or ``.mkv``.
    quarter_turns: clockwise turns that the rotation flag asks for. uneven: variable frame rate, as from a phone that
    drops frames in the dark.
    """

    picture: Callable[[float], Pixels]
    seconds: float
    rate: Fraction
    suffix: str = ".mp4"
    quarter_turns: int = 0
    uneven: bool = False

    def times(self) -> list[float]:
        """Presentation time of every frame, in seconds."""
        numbers = range(int(self.seconds * self.rate))
        return [float(n / self.rate) for n in numbers if not (self.uneven and n % 7 in (2, 3, 5))]

    def frames(self) -> Iterator[tuple[float, Pixels]]:
        """Every frame with its time."""
        for seconds in self.times():
            yield seconds, self.picture(seconds)

    def write(self, folder: Path, name: str) -> Path:
        """Write the video into a folder; returns its path."""
        path = folder / f"{name}{self.suffix}"
        write_video(path, self.frames(), self.rate, self.quarter_turns)
        return path
