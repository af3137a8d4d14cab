"""Images are shown with the same pixels, and without what is written beside them."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from tests.review.asked import PaintedTasks, all_kinds, painted_desk
from twinset.generators.decisions.pictures import Picture
from twinset.review.neutral_images import without_metadata

DRAWN = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8))
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SECRET = b"made by a generator"


def marked(form: str, orientation: int) -> Picture:
    exif, text = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = orientation, SECRET.decode()  # ImageDescription
    text.add_text("parameters", SECRET.decode())
    more: dict[str, Any] = {
        "JPEG": {"comment": SECRET, "xmp": SECRET},
        "PNG": {"pnginfo": text},
        "WEBP": {"xmp": SECRET, "lossless": True},
    }
    content = io.BytesIO()
    DRAWN.save(content, form, exif=exif, icc_profile=ICC, **more[form])
    return Picture(content.getvalue(), f"image/{form.lower()}")


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_pixels_colours_and_orientation_stay_and_nothing_else(form: str, orientation: int) -> None:
    before = marked(form, orientation)
    after = without_metadata(before)
    assert SECRET in before.content and SECRET not in after.content
    with Image.open(io.BytesIO(before.content)) as first, Image.open(io.BytesIO(after.content)) as second:
        assert second.format == form and second.info["icc_profile"] == ICC
        assert dict(second.getexif()) == ({0x0112: 6} if orientation == 6 else {})
        turned = [np.asarray(ImageOps.exif_transpose(one)) for one in (first, second)]
    np.testing.assert_array_equal(*turned)
    assert without_metadata(after) == after


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8", b"\xff\xd8\xff\xe1\0\0", b"\x89PNG\r\n\x1a\n\0", b"RIFF1234WEBP"]
)
@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "bmp"])
def test_a_broken_image_is_left_as_it_is(form: str, content: bytes) -> None:
    broken = Picture(content, f"image/{form}")
    assert without_metadata(broken) == broken
    whole = marked("JPEG", 6).content
    for cut in range(0, 300, 7):
        without_metadata(Picture(whole[:cut] + content, f"image/{form}"))


def test_what_people_see_is_unmarked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(PaintedTasks, "picture", lambda *_: marked("PNG", 1))
    tasks = painted_desk(tmp_path, all_kinds(tmp_path)).tasks
    assert SECRET not in tasks.picture(tasks.now().tasks[0], 0).content
