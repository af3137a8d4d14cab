"""Decoding stored images, of which a stranger's tar may hold anything."""

import io

from PIL import Image

from twinset.shards.storage.tar_reader import BrokenTar

FORMATS = ("JPEG", "PNG", "WEBP")
MOST_PIXELS = 64_000_000  # twice 8K video; a small file can claim far more than memory holds


def decode(content: bytes, key: str, fit: tuple[int, int] | None = None) -> Image.Image:
    """An image of the sample ``key`` as RGB, where a JPEG need be no larger than about ``fit`` (width, height) pixels.

    Raises BrokenTar for anything that is not a whole image of a format that twinset writes, or is larger than
    `MOST_PIXELS`.
    """
    try:
        # Left to guess, Pillow would also try EPS, which runs Ghostscript on what it is given.
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                problem = f"an image of {picture.width} x {picture.height} pixels, at most {MOST_PIXELS:,} are read"
                raise BrokenTar(f"{key}: {problem}; build its shard again")
            if fit is not None:
                picture.draft("RGB", fit)
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise BrokenTar(f"{key}: an image cannot be read ({error}); build its shard again") from error
