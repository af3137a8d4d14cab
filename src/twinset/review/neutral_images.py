"""Images as annotators may see them: without metadata, and those of one task of one form.

Metadata, a format or a size would tell where a photo was taken, and which image was generated.
"""

import contextlib
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageCms

from twinset.contracts.recipe import Encoding
from twinset.shards.media.decode import open_image

MEDIA_TYPE = "image/jpeg"


def in_one_form(images: Sequence[bytes]) -> list[bytes]:
    """Images as JPEG without metadata, none larger than the smallest of them: by the length of the longer side, since
    their shapes are seen anyhow.

    Returns:
        As many images, in order.

    Raises:
        UnreadableImage: one cannot be opened whole; as it is, it would show its metadata.
    """
    opened = [_opened(image) for image in images]
    longest = min((max(picture.size) for picture in opened), default=0)
    return [_written(picture, longest) for picture in opened]


def _opened(image: bytes) -> Image.Image:
    """The picture as it is seen: upright, in sRGB, on white where it is transparent."""
    upright = open_image(image, upright=True)
    profile = upright.info.get("icc_profile")
    if profile and upright.mode == "RGB":
        with contextlib.suppress(OSError, ImageCms.PyCMSError):  # a broken profile counts as sRGB, as in browsers
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            upright = ImageCms.profileToProfile(upright, source, ImageCms.createProfile("sRGB")) or upright
    return upright.convert("RGB")


def _written(picture: Image.Image, longest: int) -> bytes:
    """A picture as JPEG. longest: its longer side, pixels."""
    scale = longest / max(picture.size)
    size = max(round(picture.width * scale), 1), max(round(picture.height * scale), 1)
    # A new picture: Pillow writes what it knows of an opened one, such as its comment.
    scaled = picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)
    content = io.BytesIO()
    Image.fromarray(np.asarray(scaled)).save(content, "JPEG", quality=Encoding().quality, subsampling=0)
    return content.getvalue()
