"""Nothing but the picture tells the images of one task apart."""

import io

import numpy as np
import pytest
from PIL import Image

from twinset.generators.decisions.pictures import Picture
from twinset.review.neutral_images import in_one_form


def picture(form: str, size: tuple[int, int], value: int, **settings: object) -> Picture:
    content = io.BytesIO()
    Image.fromarray(np.full((size[1], size[0], 3), value, np.uint8)).save(content, form, **settings)  # type: ignore[arg-type]
    return Picture(content.getvalue(), f"image/{form.lower()}")


def seen(one: Picture) -> tuple[str, tuple[int, int], int]:
    with Image.open(io.BytesIO(one.content)) as image:
        return image.format or "", image.size, int(np.asarray(image).mean().round())


@pytest.mark.parametrize(
    ("first", "second", "one_source"),
    [
        (("PNG", (40, 30)), ("JPEG", (40, 30)), True),
        (("JPEG", (64, 48)), ("JPEG", (40, 40)), True),
        (("JPEG", (40, 30)), ("JPEG", (40, 30)), False),
    ],
)
def test_a_photo_and_a_generated_image_come_in_one_form(
    first: tuple[str, tuple[int, int]], second: tuple[str, tuple[int, int]], one_source: bool
) -> None:
    given = [picture(*first, 40), picture(*second, 200)]
    found = in_one_form(given, one_source)
    assert {one.media_type for one in found} == {"image/jpeg"}
    assert [seen(one)[0] for one in found] == ["JPEG"] * 2
    assert [max(seen(one)[1]) for one in found] == [40, 40]
    assert [seen(one)[2] for one in found] == [40, 200]
    tables = [Image.open(io.BytesIO(one.content)).quantization for one in found]  # type: ignore[attr-defined]
    assert tables[0] == tables[1], "one quality"


def test_a_turned_photo_is_upright_beside_an_image_of_another_form() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = picture("JPEG", (40, 30), 9, exif=exif)
    assert seen(in_one_form([turned, picture("PNG", (30, 40), 9)], False)[0])[1] == (30, 40)


def test_images_of_one_source_and_form_keep_their_bytes_and_a_broken_one_all() -> None:
    same = [picture("PNG", (40, 30), value) for value in (1, 2)]
    assert in_one_form(same, True) == tuple(same)
    broken = Picture(b"\x89PNG\r\n\x1a\n", "image/png")
    assert in_one_form([broken, same[0]], False) == (broken, same[0])
