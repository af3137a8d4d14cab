"""Panoramas for backgrounds: how many pixels one claims, and its radiance."""

import re
import struct
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.shards.media.decode import UnreadableImage, image_size

MOST_PIXELS = 16384 * 8192  # decoded 2 GB, of which Cycles holds a copy; a frame shows less of finer ones than it has
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "JPEG2000", "TGA", "SGI", "DDS")  # that Blender reads too
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
        width, height = image_size(file, FORMATS)
    except UnreadableImage as error:
        return error.pixels
    return width * height


def read_panorama(file: Path) -> NDArray[np.float32]:
    """(height, width, 3), linear, of an OpenEXR or Radiance file; raises `WrongUse`: it is neither, or too large."""
    refuse_huge(file)
    pixels = None
    if file.suffix.lower() == ".exr":
        import OpenEXR

        try:
            channels = OpenEXR.File(str(file)).channels()
            merged = [channels[name].pixels[..., :3] for name in ("RGB", "RGBA") if name in channels]
            pixels = merged[0] if merged else np.stack([channels[name].pixels for name in "RGB"], axis=2)
        except (RuntimeError, KeyError, ValueError, OSError):
            pixels = None
    elif file.is_file():
        content = file.read_bytes()
        # OpenCV would try twenty formats, and understands more headers than `refuse_huge`.
        if content.startswith(b"#?") and _RADIANCE.search(content[:HEADER]):
            pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.ndim != 3 or not np.isfinite(pixels).all():
        raise WrongUse(f"{file} is damaged; give HDRI files (.hdr, .exr) that can be read")
    return np.ascontiguousarray(pixels[..., :3], dtype=np.float32)
