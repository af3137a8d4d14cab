"""Images are found by name or id in files and tars, decoded once, and what is wrong with one is said."""

import io
import os
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from twinset.contracts.kinds.samples import Frame
from twinset.generators.galleries.source import ObjectTemplates
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.shards.media.media_folder import ImageFolder

RED, BLUE = (255, 0, 0), (0, 0, 255)


def png(colour: tuple[int, int, int] = RED, size: tuple[int, int] = (4, 2)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, "PNG")
    return stream.getvalue()


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def header(name: str, kind: bytes, size: int) -> bytes:
    """The header of a member of a tar, whatever size it claims."""
    info = tarfile.TarInfo(name)
    info.type = kind
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[124:136] = b"\xff" * 12 if size < 0 else b"\x80" + size.to_bytes(11, "big")
    raw[148:156] = b" " * 8
    raw[148:156] = f"{sum(raw):06o}\0 ".encode()
    return bytes(raw)


def colour_of(root: Path, name: str) -> tuple[int, ...]:
    frame = ImageFiles(root, upright=True).read([name])[name]
    assert isinstance(frame, Frame), frame
    return tuple(map(int, frame.pixels[0, 0]))


def problem_of(root: Path, name: str) -> UnusableImage:
    found = ImageFiles(root, upright=True).read([name])[name]
    assert isinstance(found, UnusableImage)
    return found


def test_files_are_found_by_name_and_by_id(tmp_path: Path) -> None:
    files = {"VG_100K_2/2370799.jpg": ("2370799", "2370799.jpg"), "a/b/one.two.PNG": ("one.two", "a/b/one.two")}
    for file in files:
        write(tmp_path / file, png())
    for file, names in files.items():
        for name in names:
            found = ImageFolder(tmp_path).find(name)
            assert found is not None and found.name == file
            assert colour_of(tmp_path, name) == RED
    assert problem_of(tmp_path, "VG_100K/2370799.jpg").reason == "missing-media", "a file of another folder"


def test_the_source_of_a_member_is_its_own_bytes_and_is_found_again_by_its_name(tmp_path: Path) -> None:
    content = png(BLUE)
    write_tar(tmp_path / "deep/00000.tar", {"first.jpg": png(), "ü" * 200 + ".png": png(), "k.jpg": content})
    for name in ("00000.tar/k.jpg", "k.jpg", "k"):
        assert colour_of(tmp_path, name) == BLUE
    assert colour_of(tmp_path, "ü" * 200) == RED
    frame = ImageFiles(tmp_path, upright=True).read(["k"])["k"]
    assert isinstance(frame, Frame)
    assert (frame.source.path, frame.source.size, frame.pts) == ("deep/00000.tar/k.jpg", len(content), -1.0)
    media = ObjectTemplates(kind="genecis-objects", task="focus", annotations=tmp_path, media=tmp_path).media_files()
    assert media.sha256(frame.source.path) == (frame.source.sha256, frame.source.size)
    assert media.sha256("deep/00000.tar/gone.jpg") is None


def test_names_of_one_file_share_its_frame(tmp_path: Path) -> None:
    write(tmp_path / "000000000007.jpg", png())
    read = ImageFiles(tmp_path, upright=True).read(["7", "000000000007.jpg", "7"])
    assert list(read) == ["7", "000000000007.jpg"]
    assert read["7"] is read["000000000007.jpg"]


def test_a_missing_image_is_there_once_its_file_or_its_tar_is(tmp_path: Path) -> None:
    media = ImageFolder(tmp_path)
    missing = problem_of(tmp_path, "00000.tar/k.jpg")
    assert (missing.reason, missing.media, missing.media_size) == ("missing-media", "00000.tar/k.jpg", None)
    assert media.size("00000.tar/k.jpg") is None
    write_tar(tmp_path / "00000.tar", {"other.jpg": png()})
    assert media.size("00000.tar/k.jpg") is None
    write_tar(tmp_path / "00000.tar", {"other.jpg": png(), "k.jpg": png()})
    assert media.size("00000.tar/k.jpg") == len(png())


def test_a_tar_that_is_cut_short_gives_what_it_holds(tmp_path: Path) -> None:
    whole = tmp_path / "00000.tar"
    write_tar(whole, {"a.jpg": png(RED), "b.jpg": png(BLUE), "c.jpg": os.urandom(5000)})
    content = whole.read_bytes()
    for length in (512 * 5 + 20, 512 * 4 + 20):  # within the bytes of c.jpg, and within its header
        whole.write_bytes(content[:length])
        assert colour_of(tmp_path, "a") == RED
        assert problem_of(tmp_path, "00000.tar/c.jpg").reason == "missing-media"
    whole.write_bytes(content)
    assert problem_of(tmp_path, "00000.tar/c.jpg").media_size == 5000
    whole.write_bytes(b"no tar at all" * 100)
    assert problem_of(tmp_path, "a").reason == "missing-media"


def test_hostile_tars_end_in_no_loop_and_lead_nowhere(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind.decode()}.jpg")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        info = tarfile.TarInfo("../out.jpg")
        info.size = len(png())
        tar.addfile(info, io.BytesIO(png()))
    for name in (tarfile.SYMTYPE.decode(), tarfile.LNKTYPE.decode(), tarfile.FIFOTYPE.decode()):
        assert problem_of(tmp_path, name).reason == "missing-media"
    assert problem_of(tmp_path, "00000.tar/../out.jpg").reason == "unsafe-path"
    assert colour_of(tmp_path, "out") == RED  # found by its own name: nothing is written anywhere


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE])
@pytest.mark.parametrize("size", [-1, 1 << 45, 1 << 70])  # bytes, as base 256: more than memory, than an address
def test_sizes_that_no_member_has_end_the_tar(tmp_path: Path, kind: bytes, size: int) -> None:
    write_tar(tmp_path / "00000.tar", {"first.jpg": png()})
    whole = (tmp_path / "00000.tar").read_bytes()[:1024]
    (tmp_path / "00000.tar").write_bytes(whole + header("claimed.jpg", kind, size) + bytes(10240))
    assert colour_of(tmp_path, "first") == RED
    assert problem_of(tmp_path, "claimed").reason == "missing-media"


def test_names_that_lead_out_are_unsafe(tmp_path: Path) -> None:
    for name in ("../x.jpg", "/etc/passwd", "a\0b", "a\\..\\..\\b", ""):
        assert problem_of(tmp_path, name).reason == "unsafe-path"


def test_what_is_no_regular_file_is_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    os.mkfifo(tmp_path / "00000.tar")
    (tmp_path / "device.jpg").symlink_to("/dev/zero")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    (tmp_path / "folder.jpg").mkdir()
    for name in ("pipe", "device", "loop", "folder", "00000.tar/x.jpg", ".", "http://host/pipe.jpg", "x" * 5000):
        assert problem_of(tmp_path, name).reason == "missing-media", name


def test_broken_pictures_are_told_from_missing_ones(tmp_path: Path) -> None:
    write(tmp_path / "text.jpg", b"no picture")
    write(tmp_path / "cut.png", png(size=(50, 50))[:-30])
    write(tmp_path / "empty.jpg", b"")
    write(tmp_path / "script.jpg", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    for name in ("text", "cut", "empty", "script"):
        broken = problem_of(tmp_path, name)
        assert (broken.reason, broken.media_size) == ("broken-media", ImageFolder(tmp_path).size(name))
        assert "0x" not in broken.detail


@pytest.mark.parametrize("side", [9_000, 60_000])
def test_a_decompression_bomb_is_refused_by_its_header(tmp_path: Path, side: int) -> None:
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    write(tmp_path / "bomb.png", b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT")
    broken = problem_of(tmp_path, "bomb")
    assert broken.reason == "broken-media" and "64,000,000" in broken.detail


def test_photographs_are_turned_as_pillow_turns_them_where_it_is_asked(tmp_path: Path) -> None:
    drawn = Image.fromarray(np.arange(6 * 4 * 3, dtype=np.uint8).reshape(6, 4, 3))
    for orientation in range(1, 10):
        exif = Image.Exif()
        exif[0x0112] = orientation
        drawn.save(tmp_path / "p.png", exif=exif)
        turned, stored = (ImageFiles(tmp_path, upright).read(["p"])["p"] for upright in (True, False))
        assert isinstance(turned, Frame) and isinstance(stored, Frame)
        with Image.open(tmp_path / "p.png") as picture:
            np.testing.assert_array_equal(turned.pixels, np.asarray(ImageOps.exif_transpose(picture)))
        np.testing.assert_array_equal(stored.pixels, np.asarray(drawn))


def test_a_photograph_whose_exif_is_broken_is_turned_too(tmp_path: Path) -> None:
    entries = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + struct.pack("<HHI4s", 0x011A, 2, 4, b"abc\0")  # no fraction
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4)
    Image.new("RGB", (32, 16), RED).save(tmp_path / "p.jpg", exif=exif)
    with Image.open(tmp_path / "p.jpg") as stored, pytest.raises(TypeError):
        ImageOps.exif_transpose(stored)
    frame = ImageFiles(tmp_path, upright=True).read(["p"])["p"]
    assert isinstance(frame, Frame) and frame.pixels.shape == (32, 16, 3)


@pytest.mark.parametrize(("mode", "colour"), [("L", 100), ("RGBA", (9, 8, 7, 0)), ("P", 3), ("I;16", 25600), ("1", 1)])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str, colour: int | tuple[int, ...]) -> None:
    Image.new(mode, (3, 2), colour).save(tmp_path / "p.png")
    frame = ImageFiles(tmp_path, upright=False).read(["p"])["p"]
    assert isinstance(frame, Frame)
    assert frame.pixels.shape == (2, 3, 3) and frame.pixels.dtype == np.uint8
    if mode in ("L", "I;16"):
        assert frame.pixels.tolist() == [[[100] * 3] * 3] * 2


def test_what_is_wrong_is_said_alike_wherever_the_folder_lies(tmp_path: Path) -> None:
    """It is part of rows, whose bytes are those of any other place."""
    told = []
    for folder in ("here", "there/below"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "broken.jpg").write_bytes(b"no picture")
        told.append(ImageFiles(tmp_path / folder, upright=True).read(["gone", "../out.jpg", "broken.jpg"]))
    assert told[0] == told[1] and len(told[0]) == 3
