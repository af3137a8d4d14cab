"""Images are found by name or id in files and tars, decoded once, and what is wrong with one is said."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.generators.made_inputs import picture, tar_of, write
from twinset.generators.image_files import ImageFiles

RED, BLUE = (255, 0, 0), (0, 0, 255)
PNG = picture(RED)


def read(root: Path, name: str, upright: bool = True) -> Any:
    return ImageFiles(root, upright).read([name])[name]


def test_an_image_of_two_names_is_decoded_once(tmp_path: Path) -> None:
    write(tmp_path, {"000000000007.jpg": PNG})
    images = ImageFiles(tmp_path, upright=True).read(["7", "000000000007.jpg", "7"])
    assert list(images) == ["7", "000000000007.jpg"] and images["7"] is images["000000000007.jpg"]


def test_a_tar_that_is_cut_short_gives_what_it_holds(tmp_path: Path) -> None:
    whole = tmp_path / "00000.tar"
    content = tar_of({"a.jpg": PNG, "b.jpg": picture(BLUE), "c.jpg": os.urandom(5000)})
    for length in (512 * 5 + 20, 512 * 4 + 20):  # within the bytes of c.jpg, and within its header
        whole.write_bytes(content[:length])
        assert read(tmp_path, "a").pixels[0, 0].tolist() == [*RED]
        assert read(tmp_path, "00000.tar/c.jpg").reason == "missing-media"
    whole.write_bytes(content)
    assert read(tmp_path, "00000.tar/c.jpg").media_size == 5000


def test_photographs_are_turned_as_pillow_turns_them_where_it_is_asked(tmp_path: Path) -> None:
    drawn = Image.fromarray(np.arange(6 * 4 * 3, dtype=np.uint8).reshape(6, 4, 3))
    for orientation in range(1, 10):
        exif = Image.Exif()
        exif[0x0112] = orientation
        drawn.save(tmp_path / "p.png", exif=exif)
        with Image.open(tmp_path / "p.png") as picture:
            np.testing.assert_array_equal(read(tmp_path, "p").pixels, np.asarray(ImageOps.exif_transpose(picture)))
        np.testing.assert_array_equal(read(tmp_path, "p", upright=False).pixels, np.asarray(drawn))


@pytest.mark.parametrize(("mode", "colour", "grey"), [("L", 100, 100), ("I;16", 25600, 100), ("1", 1, 255)])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str, colour: int, grey: int) -> None:
    Image.new(mode, (3, 2), colour).save(tmp_path / "p.png")
    assert np.array_equal(read(tmp_path, "p").pixels, np.full((2, 3, 3), grey, np.uint8))


def test_a_photograph_whose_exif_is_broken_is_turned_too(tmp_path: Path) -> None:
    entries = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + struct.pack("<HHI4s", 0x011A, 2, 4, b"abc\0")  # no fraction
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4)
    Image.new("RGB", (32, 16), RED).save(tmp_path / "p.jpg", exif=exif)
    with Image.open(tmp_path / "p.jpg") as stored, pytest.raises(TypeError):
        ImageOps.exif_transpose(stored)
    assert read(tmp_path, "p").pixels.shape == (32, 16, 3)
