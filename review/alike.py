"""The images of one task in one form: what differs beside the picture itself would tell which was generated."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageCms, ImageOps

from twinset.generators.decisions.pictures import Picture
from twinset.review.unmarked import unmarked

QUALITY = 95  # of JPEG, at full colour resolution, as datasets are written


def alike(images: Sequence[Picture], one_source: bool) -> tuple[Picture, ...]:
    """Images without metadata, of one format and size.

    Images of one source that have one format and size keep their pixels. Others are written again as JPEG in sRGB, none
    larger than the smallest of them: by the length of the longer side, since their shapes are seen anyhow.

    Args:
        one_source: whether all come from one stage, which wrote them in one way.

    Returns:
        As many images, in order. Where one is damaged all are left as they are, but for metadata.
    """
    try:
        opened = [_opened(one) for one in images]
    except Exception:  # a broken image can make Pillow raise nearly anything
        return tuple(map(unmarked, images))
    if one_source and len({(one.media_type, seen.size) for one, seen in zip(images, opened, strict=True)}) == 1:
        return tuple(map(unmarked, images))
    longest = min(max(seen.size) for seen in opened)
    return tuple(_written(seen, longest) for seen in opened)


def _opened(image: Picture) -> Image.Image:
    """The picture as it is seen: upright, in sRGB, on white where it is transparent."""
    with Image.open(io.BytesIO(image.content)) as stored:
        profile = stored.info.get("icc_profile")
        upright = ImageOps.exif_transpose(stored)
    if profile and upright.mode == "RGB":
        given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        upright = ImageCms.profileToProfile(upright, given, ImageCms.createProfile("sRGB")) or upright
    if upright.has_transparency_data:
        seen = upright.convert("RGBA")
        ground = Image.new("RGBA", seen.size, "white")
        return Image.alpha_composite(ground, seen).convert("RGB")
    return upright.convert("RGB")


def _written(seen: Image.Image, longest: int) -> Picture:
    """An image as JPEG. longest: its longer side, pixels."""
    scale = longest / max(seen.size)
    size = max(round(seen.width * scale), 1), max(round(seen.height * scale), 1)
    content = io.BytesIO()
    resized = seen if size == seen.size else seen.resize(size, Image.Resampling.LANCZOS)
    resized.save(content, "JPEG", quality=QUALITY, subsampling=0)
    return Picture(content.getvalue(), "image/jpeg")
