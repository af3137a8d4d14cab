"""Reading frames that were dumped as pictures, as Action Genome's official tool does."""

from __future__ import annotations

import hashlib
import io
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from shards.kinds.samples import Pixels

MAX_PIXELS = 1 << 26  # a picture: 8,192 x 8,192; checked before decompression


class UnreadablePicture(Exception):
    """A file that is no PNG, is damaged or is of an absurd size; the message names the file and what is wrong."""


def read_picture(path: Path) -> tuple[Pixels, str, int]:
    """Pixels of a PNG ((height, width, 3) uint8 RGB, alpha dropped), sha256 and size (bytes) of the file.

    Raises `UnreadablePicture`, and OSError when the file cannot be read at all.
    """
    data = path.read_bytes()
    name = f"{path.parent.name}/{path.name}"
    try:
        # From memory, so that an OSError of Pillow's is about the picture, never about the disk.
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise UnreadablePicture(f"{name}: {picture.width} x {picture.height} pixels are no video frame")
            if picture.mode.startswith("I"):  # 16 bits of grey, which Pillow would clip instead of scaling
                grey = (np.asarray(picture, dtype=np.uint32) >> 8).astype(np.uint8)
                pixels = np.repeat(grey[:, :, np.newaxis], 3, axis=2)
            else:
                pixels = np.array(picture.convert("RGB"), dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, zlib.error, Image.DecompressionBombError) as error:
        # Pillow's own words can hold a memory address, which would make rows differ from run to run.
        raise UnreadablePicture(f"{name}: not a readable PNG ({type(error).__name__}); dump it anew") from error
    return pixels, hashlib.sha256(data).hexdigest(), len(data)
