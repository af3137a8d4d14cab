"""How a performance is filmed: frame rate, container, the oddities of real files; H.264, the same bytes every time."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import av
import numpy as np

from twinset.contracts.kinds.samples import Pixels

TIME_BASE = Fraction(1, 90000)
# One thread, because x264's rate control depends on their number. Plain C code (asm=0), because with AVX-512 the same
# pictures gave other bytes in one process out of ten on a busy virtual machine. Three B-frames and open groups of
# pictures, because seeking code that is only tried on simple streams is not tried at all.
X264 = {"preset": "veryfast", "crf": "21", "threads": "1", "bf": "3", "g": "30", "x264-params": "asm=0:open-gop=1"}


class Performance(Protocol):
    """What can be filmed."""

    @property
    def seconds(self) -> float:
        """How long it lasts."""

    def picture(self, seconds: float) -> Pixels:
        """(240, 320, 3) RGB picture of one moment."""


P = TypeVar("P", bound=Performance, covariant=True)


@dataclass(frozen=True, slots=True)
class Film(Generic[P]):
    """One video to be written, as `write_video` says; uneven: drops frames, as a phone does in the dark."""

    show: P
    rate: Fraction = Fraction(12)
    suffix: str = ".mp4"
    quarter_turns: int = 0
    uneven: bool = False

    def times(self) -> list[float]:
        """Presentation time of every frame, in seconds."""
        numbers = range(int(self.show.seconds * self.rate))
        return [float(n / self.rate) for n in numbers if not (self.uneven and n % 7 in (2, 3, 5))]

    def write(self, folder: Path, name: str) -> None:
        """Write the video into a folder, which is made where it does not exist."""
        folder.mkdir(exist_ok=True)
        frames = ((seconds, self.show.picture(seconds)) for seconds in self.times())
        write_video(folder / f"{name}{self.suffix}", frames, self.rate, self.quarter_turns)


def write_video(path: Path, frames: Iterable[tuple[float, Pixels]], rate: Fraction, quarter_turns: int = 0) -> None:
    """Write frames as a video.

    Args:
        path: Its suffix picks mp4 or mkv.
        frames: (time in seconds, RGB picture).
        rate: Nominal frames a second.
        quarter_turns: Clockwise turns that a player has to make (mp4 only): pictures are stored turned the other way,
            as by a phone held sideways, and the file's rotation flag undoes it.
    """
    # Without bitexact, Matroska files carry a random identifier.
    with av.open(path, "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=rate, options=X264)
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = TIME_BASE
        for number, (seconds, pixels) in enumerate(frames):
            stored = np.ascontiguousarray(np.rot90(pixels, quarter_turns))
            if number == 0:
                stream.height, stream.width = stored.shape[:2]
            frame = av.VideoFrame.from_ndarray(stored, format="rgb24")
            frame.pts, frame.time_base = round(seconds / TIME_BASE), TIME_BASE
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    if quarter_turns:
        _flag_rotation(path, quarter_turns)


def _flag_rotation(path: Path, quarter_turns: int) -> None:
    """Write the display matrix into the track header (ISO/IEC 14496-12, 8.3.2), which PyAV cannot do."""
    written = bytearray(path.read_bytes())
    header = written.index(b"tkhd", written.index(b"moov")) + 4
    matrix = header + (40 if written[header] == 0 else 52)
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter_turns % 4]
    one, full = 1 << 16, 1 << 30
    struct.pack_into(">9i", written, matrix, cos * one, sin * one, 0, -sin * one, cos * one, 0, 0, 0, full)
    path.write_bytes(written)
