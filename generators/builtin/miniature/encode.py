"""Writing the miniature's videos: H.264 with B-frames like real ones, the same bytes every time."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from shards.kinds.samples import Pixels

TIME_BASE = Fraction(1, 90000)
# One thread, because x264's rate control depends on their number. Plain C code (asm=0), because with AVX-512 the same
# pictures gave other bytes in one process out of ten on a busy virtual machine. Three B-frames and open groups of
# pictures, because seeking code that is only tried on simple streams is not tried at all.
X264 = {
    "preset": "veryfast",
    "crf": "21",
    "threads": "1",
    "bf": "3",
    "g": "30",
    "x264-params": "asm=0:open-gop=1",
}


def write_video(path: Path, frames: Iterable[tuple[float, Pixels]], rate: Fraction, quarter_turns: int = 0) -> None:
    """Write (time in seconds, RGB picture) frames; the suffix of ``path`` picks mp4 or mkv.

    quarter_turns: clockwise turns that a player has to make (mp4 only): pictures are stored turned the other way, as a
    phone held sideways does, and the file's rotation flag undoes it.
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
    """Write the display matrix into the track header (ISO/IEC 14496-12, 8.3.2): PyAV has no way to ask for it."""
    written = bytearray(path.read_bytes())
    header = written.index(b"tkhd", written.index(b"moov")) + 4
    matrix = header + (40 if written[header] == 0 else 52)
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter_turns % 4]
    one, full = 1 << 16, 1 << 30
    struct.pack_into(">9i", written, matrix, cos * one, sin * one, 0, -sin * one, cos * one, 0, 0, 0, full)
    path.write_bytes(written)
