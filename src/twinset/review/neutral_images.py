"""Images as annotators may see them: without metadata, and those of one task of one form.

Metadata, a format or a size would tell where a photo was taken, and which image was generated.
"""

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from PIL import Image, ImageCms

from twinset.contracts.recipe import Encoding
from twinset.generators.decisions.pictures import Picture
from twinset.shards.media.decode import ORIENTATION, open_image, orientation

UPRIGHT = 1
ICC = b"ICC_PROFILE\0"
_SCAN, _APP0, _APP1, _APP2, _ADOBE, _APP15, _COMMENT = 0xDA, 0xE0, 0xE1, 0xE2, 0xEE, 0xEF, 0xFE
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_MARKS = (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf")
_WEBP_MARKS = (b"EXIF", b"XMP ")
_HAS_EXIF, _HAS_XMP = 0x08, 0x04  # flags of WebP's VP8X


def in_one_form(images: Sequence[Picture], one_source: bool) -> tuple[Picture, ...]:
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


def _written(seen: Image.Image, longest: int) -> Picture:
    """An image as JPEG. longest: its longer side, pixels."""
    scale = longest / max(seen.size)
    size = max(round(seen.width * scale), 1), max(round(seen.height * scale), 1)
    content = io.BytesIO()
    resized = seen if size == seen.size else seen.resize(size, Image.Resampling.LANCZOS)
    resized.save(content, "JPEG", quality=Encoding().quality, subsampling=0)
    return Picture(content.getvalue(), "image/jpeg")


def without_metadata(image: Picture) -> Picture:
    """The image with the same pixels, colours and orientation, and no other metadata.

    One that is damaged, or of another format than its name says, is left as it is: browsers may still show it.
    """
    strip = _FORMATS.get(image.media_type)
    try:
        return image if strip is None else Picture(strip(image.content), image.media_type)
    except Exception:  # there is no end to what a broken image makes Pillow raise
        return image


def _turned(content: bytes) -> bytes:
    """A block of EXIF with the orientation alone; nothing for an image that is upright."""
    turned = orientation(content)
    if turned not in range(UPRIGHT + 1, 9):
        return b""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, ORIENTATION, 3, 1, turned, 0, 0)


def _jpeg(content: bytes) -> bytes:
    if content[:2] != b"\xff\xd8":
        raise ValueError("not JPEG")
    kept, at = [], 2
    while True:
        mark, code, size = struct.unpack_from(">BBH", content, at)
        if mark != 0xFF or size < 2:
            raise ValueError("not a segment")
        if code == 0xFF:  # a byte that fills up
            at += 1
            continue
        if code == _SCAN:
            break
        segment = content[at : at + 2 + size]
        ours = code in (_APP0, _ADOBE) or (code == _APP2 and segment[4:].startswith(ICC))
        if ours or not (_APP0 <= code <= _APP15 or code == _COMMENT):
            kept.append(segment)
        at += 2 + size
    exif = _turned(content)
    if exif:
        exif = struct.pack(">BBH", 0xFF, _APP1, len(exif) + 8) + b"Exif\0\0" + exif
    first = 1 if kept and kept[0][1] == _APP0 else 0
    return b"".join((b"\xff\xd8", *kept[:first], exif, *kept[first:], content[at:]))


def _png(content: bytes) -> bytes:
    if not content.startswith(_PNG):
        raise ValueError("not PNG")
    kept, at = [_PNG], len(_PNG)
    exif = _turned(content)
    while at < len(content):
        size, name = struct.unpack_from(">I4s", content, at)
        if name == b"IDAT" and exif:
            body, exif = b"eXIf" + exif, b""
            kept.append(struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)))
        if name not in _PNG_MARKS:
            kept.append(content[at : at + 12 + size])
        if name == b"IEND":
            break
        at += 12 + size
    return b"".join(kept)


def _webp(content: bytes) -> bytes:
    exif, kept = _turned(content), []
    for name, body in _riff(content):
        if name in _WEBP_MARKS:
            continue
        if name == b"VP8X":
            body = bytes([body[0] & ~(_HAS_EXIF | _HAS_XMP) | (_HAS_EXIF if exif else 0)]) + body[1:]
        kept.append((name, body))
    if exif:
        kept.append((b"EXIF", exif))
    chunks = b"".join(name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2) for name, body in kept)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


def _riff(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        raise ValueError("not WebP")
    at = 12
    while at + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, at)
        yield name, content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


_FORMATS: Mapping[str, Callable[[bytes], bytes]] = {"image/jpeg": _jpeg, "image/png": _png, "image/webp": _webp}
