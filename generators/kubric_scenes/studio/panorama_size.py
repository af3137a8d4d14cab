"""How large a background picture says it is, before Blender decodes it: a small file can claim any size."""

from __future__ import annotations

import re
import struct
import warnings
from pathlib import Path

from PIL import Image

from twinset.manifests.errors import WrongUse

MOST_PIXELS = 16384 * 8192  # decoded 2 GB, of which Cycles holds a copy; a frame shows less of finer ones than it has
HEADER = 1 << 16  # bytes that are looked at

_RADIANCE = re.compile(rb"\n\n[-+][XY] +(\d{1,9}) +[-+][XY] +(\d{1,9})\n")
_EXR = b"\x76\x2f\x31\x01"
_WINDOW = re.compile(rb"(?:dataWindow|displayWindow)\0box2i\0\x10\0\0\0(.{16})", re.DOTALL)


def refuse_huge(file: Path) -> None:
    """Raise `WrongUse` where a picture has more than `MOST_PIXELS`; what cannot be read is left to Blender.

    Radiance (``.hdr``) says its size in the line after the header, OpenEXR in the corners of its windows.
    """
    try:
        with file.open("rb") as stream:
            start = stream.read(HEADER)
    except OSError:
        return
    if start.startswith(b"#?"):
        found = _RADIANCE.search(start)
        most = int(found[1]) * int(found[2]) if found else 0
    elif start.startswith(_EXR):
        corners = [struct.unpack("<4i", window) for window in _WINDOW.findall(start)]
        most = max(((right - left + 1) * (below - above + 1) for left, above, right, below in corners), default=0)
    else:
        most = _of_another_format(file)
    if most > MOST_PIXELS:
        limit = f"at most {MOST_PIXELS:,} (16,384 × 8,192) are read, so make it smaller"
        raise WrongUse(f"{file}: a picture of {most:,} pixels; {limit}")


def _of_another_format(file: Path) -> int:
    """Pixels, as Pillow reads them off a header, 0 where it cannot; Blender goes by what a file holds, not its name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file) as picture:
                return picture.width * picture.height
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        return int(re.findall(r"\d+", str(error))[0])
    except (OSError, ValueError, SyntaxError):
        return 0
