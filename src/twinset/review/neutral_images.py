"""Images as annotators may see them: without metadata, and those of one task of one form.

Metadata, a format or a size would tell where a photo was taken, and which image was generated.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from twinset.contracts.recipe import Encoding
from twinset.generators.decisions.pictures import Picture
from twinset.shards.media.decode import open_image

JPEG = "image/jpeg"
#: Pillow's name of a format, and how it is written.
_FORMATS: Mapping[str, tuple[str, dict[str, Any]]] = {
    JPEG: ("JPEG", {"quality": Encoding().quality, "subsampling": 0}),
    "image/png": ("PNG", {}),
    "image/webp": ("WEBP", {"lossless": True}),
}


def in_one_form(images: Sequence[Picture], one_source: bool) -> tuple[Picture, ...]:
    """Images without metadata, of one format and size.

    Images of one source that have one format and size keep these. Others are written as JPEG, none larger than the
    smallest of them: by the length of the longer side, since their shapes are seen anyhow.

    Args:
        one_source: whether all come from one stage, which wrote them in one way.

    Returns:
        As many images, in order. Where one is damaged, the others have no metadata, and keep format and size.
    """
    try:
        opened = [_opened(one) for one in images]
    except Exception:  # a broken image can make Pillow raise nearly anything
        return tuple(map(without_metadata, images))
    if one_source and len({(one.media_type, seen.size) for one, seen in zip(images, opened, strict=True)}) == 1:
        return tuple(map(without_metadata, images))
    longest = min(max(seen.size) for seen in opened)
    return tuple(_written(seen, longest) for seen in opened)


def _opened(image: Picture) -> Image.Image:
    """The picture as it is seen: upright, in sRGB, on white where it is transparent."""
    upright = open_image(image.content, upright=True)
    profile = upright.info.get("icc_profile")
    if profile and upright.mode == "RGB":
        given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        upright = ImageCms.profileToProfile(upright, given, ImageCms.createProfile("sRGB")) or upright
    return upright.convert("RGB")


def _written(seen: Image.Image, longest: int = 0, media_type: str = JPEG) -> Picture:
    """An image in a format of `_FORMATS`. longest: its longer side, pixels; 0: as it is."""
    scale = longest / max(seen.size) if longest else 1
    size = max(round(seen.width * scale), 1), max(round(seen.height * scale), 1)
    # A new picture: Pillow writes what it knows of an opened one, such as its comment.
    bare = Image.fromarray(np.asarray(seen if size == seen.size else seen.resize(size, Image.Resampling.LANCZOS)))
    content, (form, settings) = io.BytesIO(), _FORMATS[media_type]
    bare.save(content, form, **settings)
    return Picture(content.getvalue(), media_type)


def without_metadata(image: Picture) -> Picture:
    """The image written again as it is seen, in its own format. One that cannot be opened is left as it is: browsers
    may still show it.
    """
    try:
        return _written(_opened(image), media_type=image.media_type)
    except Exception:  # there is no end to what a broken image makes Pillow raise
        return image
