"""Images of others, of which a file may hold anything: the one place where the product opens them."""

import io
import re

from PIL import Image, ImageFile, ImageOps

from twinset.shards.storage.tar_reader import BrokenTar

#: Left to guess, Pillow would also try EPS, which runs Ghostscript on what it is given.
FORMATS = ("JPEG", "PNG", "WEBP")
MOST_PIXELS = 64_000_000  # twice 8K video; a small file can claim far more than memory holds
#: Scans of a JPEG: cameras and encoders write about ten. Each of a few bytes costs a pass over all pixels.
MOST_SCANS = 200
Image.MAX_IMAGE_PIXELS = None  # of Pillow, which warns and raises at others
_MARK = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # of a JPEG, none of those that stand within a scan


class UnreadableImage(Exception):
    """Bytes that are not a whole image, or one too large.

    kind: the name of the error's class; unlike Pillow's words it never holds a memory address, and may enter rows.
    size: width and height, where they are too large.
    """

    def __init__(self, problem: str, kind: str, size: tuple[int, int] | None = None) -> None:
        super().__init__(problem)
        self.kind, self.size = kind, size


def open_image(
    content: bytes,
    formats: tuple[str, ...] = FORMATS,
    most: int = MOST_PIXELS,
    *,
    upright: bool = False,
    fit: tuple[int, int] | None = None,
) -> Image.Image:
    """An image, decoded, in its own mode, on white and RGB where it is transparent; of an animation the first frame.

    Args:
        content: the file.
        formats: those of Pillow that are read; nothing else is tried.
        most: pixels; the header is asked before anything is decoded. Pillow itself limits what a PNG's texts and
            colour profile expand to (1 MiB each, 64 MiB together).
        upright: whether it is turned as its EXIF orientation says, if its EXIF can be read.
        fit: width and height in pixels; a JPEG may be decoded smaller, though no smaller than this, and as RGB.

    Raises:
        UnreadableImage: for all but a lack of memory.
    """
    # Libraries switch this on for their whole process as they are imported (face_recognition does): Pillow would then
    # fill up what is cut off, and expand texts and profiles without limit.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with Image.open(io.BytesIO(content), formats=formats) as picture:
            width, height = picture.size
            if width * height > most:
                problem = f"{width} x {height} pixels, at most {most:,} are read"
                raise UnreadableImage(problem, "TooManyPixels", picture.size)
            if picture.format in ("JPEG", "MPO") and _has_too_many_scans(content):
                raise UnreadableImage(f"a JPEG of more than {MOST_SCANS} scans", "TooManyScans")
            if fit is not None:
                picture.draft("RGB", fit)
            picture.load()
            if upright:
                _turn(picture)
            return _on_white(picture)
    except (UnreadableImage, MemoryError):
        raise
    except Exception as error:  # Pillow's formats raise SyntaxError, struct.error, ValueError, and their own
        raise UnreadableImage(" ".join(str(error).split())[:200], type(error).__name__) from error


def _on_white(picture: Image.Image) -> Image.Image:
    """As browsers and img2dataset show what is transparent: under it anything may be stored, mostly black."""
    if not picture.has_transparency_data or picture.mode.startswith("I"):
        return picture
    seen = picture.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    flat.format = picture.format
    flat.info = {name: value for name, value in picture.info.items() if name != "transparency"}  # such as its colours
    return flat


def _has_too_many_scans(content: bytes) -> bool:
    if content.count(b"\xff\xda") <= MOST_SCANS:
        return False
    at, scans = 2, 0
    # Phones append videos to photos, in which the mark of a scan is frequent: only the segments of the image count.
    while scans <= MOST_SCANS and (mark := _MARK.search(content, at)) is not None:
        if mark[0] == b"\xff\xd9":
            return False
        scans += mark[0] == b"\xff\xda"
        at = mark.end() + int.from_bytes(content[mark.end() : mark.end() + 2], "big")
    return scans > MOST_SCANS


def _turn(picture: Image.Image) -> None:
    try:
        ImageOps.exif_transpose(picture, in_place=True)
    except MemoryError:
        raise
    except Exception:  # anything may stand in EXIF; what is turned stays so
        return


def decode(content: bytes, key: str, fit: tuple[int, int] | None = None, *, upright: bool = False) -> Image.Image:
    """An image of the sample ``key`` as RGB, where a JPEG need be no larger than about ``fit`` (width, height) pixels.
    upright: as `open_image`.

    Raises BrokenTar for anything that is not a whole image of a format that twinset writes, or is larger than
    `MOST_PIXELS`.
    """
    try:
        picture = open_image(content, fit=fit, upright=upright)
        return picture if picture.mode == "RGB" else picture.convert("RGB")  # which would copy every pixel
    except UnreadableImage as error:
        problem = f"an image of {error}" if error.size else f"an image cannot be read ({error})"
        raise BrokenTar(f"{key}: {problem}; build its shard again") from error
