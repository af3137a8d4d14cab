"""Attack: a file that is given out as an image runs nothing, fills no memory and takes no minutes."""

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import EpsImagePlugin, Image, ImageFile

from tests.test_rooms import MODULES, PACKAGE
from twinset.cards.sheet import Block, Cell, contact_sheet
from twinset.evaluation.features import pictures
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.review.neutral_images import in_one_form
from twinset.shards.media.decode import MOST_SCANS, UnreadableImage, decode, open_image
from twinset.shards.storage.tar_reader import BrokenTar

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(program) run\nshowpage\n%%EOF\n"


@pytest.fixture
def ghostscript(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of Ghostscript by Pillow."""
    calls: list[Any] = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *call, **_: calls.append(call))
    return calls


def encoded(picture: Image.Image, kind: str = "JPEG", **settings: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **settings)
    return stream.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    """A part of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def claiming(width: int, height: int) -> bytes:
    """A PNG of some bytes that says it has many pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"")


def many_scans(count: int) -> bytes:
    """A progressive JPEG with ``count`` scans and another image behind its end, as phones append videos."""
    whole = encoded(Image.new("L", (64, 64), 128), progressive=True)
    last = whole[whole.rindex(b"\xff\xc4", 0, whole.rindex(b"\xff\xda")) : -2]
    behind = b"\xff\xda" * (MOST_SCANS + 1)
    return whole[:-2] + last * (count - whole.count(b"\xff\xda")) + b"\xff\xd9" + behind


def expanding(kind: bytes, start: bytes) -> bytes:
    """A PNG with a chunk of 64 kB that expands to 64 MB."""
    whole = encoded(Image.new("L", (4, 4)), "PNG")
    return whole[:33] + chunk(kind, start + zlib.compress(bytes(64 << 20), 9)) + whole[33:]  # behind the header


HOSTILE = {
    "EPS": EPS,
    "bomb": encoded(Image.new("1", (9000, 9000)), "PNG"),
    "claim": claiming(100_000, 100_000),
    "truncated": encoded(Image.effect_noise((64, 64), 50))[:-900],
    "empty": b"",
    "scans": many_scans(MOST_SCANS + 1),
    "zTXt": expanding(b"zTXt", b"Comment\0\0"),
    "iTXt": expanding(b"iTXt", b"Comment\0\1\0\0\0"),
    "iCCP": expanding(b"iCCP", b"profile\0\0"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_images_are_refused(
    tmp_path: Path, ghostscript: list[Any], content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As face_recognition does when it is imported.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(UnreadableImage):
        open_image(content)
    with pytest.raises(BrokenTar, match=r"key: an image .*build its shard again"):
        decode(content, "key")
    with pytest.raises(BrokenTar, match=r"key: an image .*build its shard again"):
        contact_sheet([Block("key", [Cell(image=content)], 1, "")], "title", "subtitle")
    with pytest.raises(pictures.Unusable):
        pictures.decode("there", content)
    (tmp_path / "a.png").write_bytes(content)
    unusable = ImageFiles(tmp_path, upright=True).read(["a.png"])["a.png"]
    assert isinstance(unusable, UnusableImage) and unusable.reason == "broken-media"
    with pytest.raises(UnreadableImage):
        in_one_form([content, encoded(Image.new("RGB", (8, 8)))])
    assert ghostscript == []


def test_what_lies_behind_a_photo_does_not_count_as_its_scans() -> None:
    assert open_image(many_scans(MOST_SCANS)).size == (64, 64)


def drawing(mode: str) -> Image.Image:
    """A black disc on a transparent ground, below which everything is black; its rim is half transparent."""
    seen = Image.new("LA", (40, 40), (0, 0))
    seen.putpixel((20, 20), (0, 255))
    seen.putpixel((21, 20), (0, 128))
    return seen.convert("RGBA").quantize(4) if mode == "P" else seen.convert(mode)


@pytest.mark.parametrize(
    ("mode", "kind"), [("RGBA", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("RGBA", "WEBP"), ("P", "GIF")]
)
def test_what_is_transparent_lies_on_white(mode: str, kind: str) -> None:
    picture = drawing(mode).convert(mode if kind == "PNG" else "RGBA")
    opened = open_image(encoded(picture, kind, lossless=True), (kind,))
    assert (opened.mode, opened.format, opened.size) == ("RGB", kind, (40, 40))
    assert opened.getpixel((2, 2)) == (255, 255, 255) and opened.getpixel((20, 20)) == (0, 0, 0)
    assert kind == "GIF" or opened.getpixel((21, 20)) == (127, 127, 127)


def test_what_hides_nothing_changes_no_pixel_and_a_colour_may_stand_for_transparent() -> None:
    noise = Image.effect_noise((30, 20), 90).convert("RGB")
    assert open_image(encoded(noise.convert("RGBA"), "PNG")).tobytes() == noise.tobytes()
    for mode, black in {"L": 0, "1": 0, "RGB": (0, 0, 0)}.items():
        content = encoded(Image.new(mode, (4, 4), black), "PNG", transparency=black)
        assert open_image(content).getcolors() == [(16, (255, 255, 255))]


def test_an_animation_is_its_first_frame() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    for kind in ("GIF", "WEBP", "PNG"):
        content = encoded(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
        assert open_image(content, (kind,)).convert("RGB").getpixel((0, 0)) == (255, 0, 0)


#: What opens images of others; PyAV reads video.
OPENERS = re.compile(
    r"Image\.open\(|cv2\.(imread|imdecode|VideoCapture)|io\.read_image"
    r"|^\s*(import|from) (imageio|torchvision\.io|matplotlib\.image|skimage\.io)|^from PIL\.Image import .*\bopen\b",
    re.MULTILINE,
)


def test_no_other_place_in_the_product_opens_images() -> None:
    places = {path.relative_to(PACKAGE).as_posix() for path in MODULES if OPENERS.search(path.read_text("utf-8"))}
    assert places == {"shards/media/decode.py"}
