"""Background pictures that claim more pixels than memory holds are refused by their header."""

import re
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.scene.panoramas import MOST_PIXELS, refuse_huge

WIDTH, HEIGHT = 16384, 8192


def radiance(width: int, height: int) -> bytes:
    return f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {height} +X {width}\n".encode()


def exr(width: int, height: int) -> bytes:
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attribute = b"dataWindow\0box2i\0" + struct.pack("<i", 16) + window
    return b"\x76\x2f\x31\x01\x02\0\0\0channels\0chlist\0\x01\0\0\0\0" + attribute + b"\0"


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 1 << 20) + b"IDAT"


@pytest.mark.parametrize("claims", [radiance, exr, png])
def test_a_header_that_claims_too_much_is_refused(tmp_path: Path, claims: object) -> None:
    file = tmp_path / "sky.hdr"
    file.write_bytes(claims(WIDTH, HEIGHT))  # type: ignore[operator]
    refuse_huge(file)
    for width, height in ((WIDTH, HEIGHT + 1), (60_000, 30_000)):
        file.write_bytes(claims(width, height))  # type: ignore[operator]
        said = f"sky.hdr: a picture of {width * height:,} pixels; at most {MOST_PIXELS:,} "
        with pytest.raises(WrongUse, match=re.escape(said)):
            refuse_huge(file)


def test_what_cannot_be_read_is_left_to_blender(tmp_path: Path) -> None:
    file = tmp_path / "sky.exr"
    refuse_huge(file)
    for content in (b"", b"#?RADIANCE", b"\x76\x2f\x31\x01", b"no panorama"):
        file.write_bytes(content)
        refuse_huge(file)


def test_sizes_are_read_off_files_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.kubric_scenes.scene.panoramas.MOST_PIXELS", 64 * 32 - 1)
    cv2.imwrite(str(tmp_path / "sky.hdr"), np.ones((32, 64, 3), np.float32))
    with pytest.raises(WrongUse, match="a picture of 2,048 pixels"):
        refuse_huge(tmp_path / "sky.hdr")
    bpy = pytest.importorskip("bpy")
    world = Path(bpy.utils.system_resource("DATAFILES")) / "studiolights/world"
    with pytest.raises(WrongUse, match="a picture of 524,288 pixels"):
        refuse_huge(world / "city.exr")
