"""Pictures of benchmarks: images found by name, arrays, crops. Bytes are read when a picture is, never before."""

import io
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from pathlib import Path, PurePosixPath
from tokenize import TokenError
from typing import Literal

import numpy as np
from numpy.lib import format as npy
from PIL import Image

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Pixels
from twinset.evaluation.examples import Picture
from twinset.generators.galleries.annotations import OutsideImage, crop
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.shards.media.media_folder import IMAGE_SUFFIXES, EscapesRoot, ImageFolder, StoredImage
from twinset.shards.storage.tar_reader import MEMBER_LIMIT

REMEMBERED = 4096  # names: frames of one video are asked for again and again
REFETCH = "fetch it again"
ARRAY = ".npy"

Box = tuple[float, float, float, float]
CutOut = Literal["genecis", "box"]


class Images:
    """The images below the folder of a benchmark, found by the names that its annotations use.

    They may lie in folders of any depth, links and tars (`shards.media.media_folder.ImageFolder`).
    """

    def __init__(self, root: Path, folders: Sequence[str] = (), unread: bool = False) -> None:
        """folders: below the root, looked into first. unread: whether none is looked for, and each taken to be there,
        where only the captions are asked for.
        """
        first = [root / folder for folder in folders if (root / folder).is_dir()]
        self._places = [ImageFolder(place) for place in dict.fromkeys([*first, root])]
        self._unread = unread
        self._find = lru_cache(REMEMBERED)(self._looked_up)

    def find(self, name: str, where: str, box: Box | None = None, how: CutOut = "genecis") -> Picture | None:
        """The picture of a name; None when it is not there.

        Args:
            name: file name, with folders or without, with a suffix or without.
            where: the record that names it, for messages.
            box: x, y, width, height in pixels, which is cut out of the file that is called just so, and not of COCO's
                image of the same number.
            how: with the surroundings of the box, as GeneCIS does, or the ``box`` alone, as ARO does.

        Raises:
            WrongUse: the name leads out of the folder.
        """
        if self._unread:
            return Picture(name, partial(_refuse, name))
        with naming(where, EscapesRoot):
            located = self._find(name)
        if located is None:
            return None
        root, stored = located
        if box is None:
            read = _read_array if stored.name.endswith(ARRAY) else _read
            return Picture(f"{root}/{stored.name}", partial(read, stored))
        if PurePosixPath(stored.name).name != PurePosixPath(name).name:
            return None
        shown = ",".join(f"{number:g}" for number in box)
        return Picture(f"{root}/{stored.name}#{shown}", partial(_read_crop, root, stored.name, box, how))

    def _looked_up(self, name: str) -> tuple[Path, StoredImage] | None:
        located = ((place.root, place.find(name)) for place in self._places)
        return next(((root, stored) for root, stored in located if stored is not None), None)


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES


def image_folders(
    data: Path, parents: Sequence[str], wanted: Callable[[str], bool], least: int = 1
) -> dict[Path, list[Path]]:
    """Folders with a wanted name that hold images, each with these, in the first parent that has at least so many; all
    in alphabetical order.
    """
    for parent in parents:
        folders = sorted(path for path in (data / parent).glob("*") if wanted(path.name) and path.is_dir())
        images = ((folder, sorted(filter(_is_image, folder.iterdir()))) for folder in folders)
        if len(filled := {folder: paths for folder, paths in images if paths}) >= least:
            return filled
    return {}


def _refuse(name: str) -> bytes:
    raise WrongUse(f"{name}: the benchmark was opened for its captions alone")


def as_png(pixels: Pixels) -> bytes:
    """(height, width, 3) uint8 RGB as a PNG, which keeps every pixel."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _read(stored: StoredImage) -> bytes:
    """Bytes of a file as it is now, or of a member of a tar, which begins behind a header."""
    with stored.path.open("rb") as stream:
        stream.seek(stored.offset)
        content = stream.read(min(stored.size, MEMBER_LIMIT + 1) if stored.offset else MEMBER_LIMIT + 1)
    if len(content) > MEMBER_LIMIT:
        raise WrongUse(f"{stored.path}: {stored.name} has over {MEMBER_LIMIT:,} bytes, more than any image; {REFETCH}")
    if stored.offset and len(content) < stored.size:
        raise WrongUse(f"{stored.path}: cut short within {stored.name}; {REFETCH}")
    return content


def _read_array(stored: StoredImage) -> bytes:
    """A frame of EqBen's YouCook2: an array (height, width, 3) uint8, blue first, as OpenCV reads video."""
    stream = io.BytesIO(_read(stored))
    try:
        # The header alone: `np.load` would allocate whatever it claims, or unpickle.
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = header(stream)
    except (ValueError, TypeError, EOFError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise WrongUse(f"{stored.path}: not an array of numbers ({error}); {REFETCH}") from error
    pixels = stream.getbuffer()[stream.tell() :]
    if len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or not 0 < prod(shape) == len(pixels):
        raise WrongUse(f"{stored.path}: an array {shape} of {dtype}, not a whole BGR image; {REFETCH}")
    bgr = np.frombuffer(pixels, np.uint8).reshape(shape, order="F" if by_columns else "C")
    return as_png(np.ascontiguousarray(bgr[:, :, ::-1]))


def _read_crop(root: Path, name: str, box: Box, how: CutOut) -> bytes:
    frame = ImageFiles(root, upright=False).read([name])[name]
    if isinstance(frame, UnusableImage):
        raise WrongUse(f"{root}: {frame.detail}")
    try:
        if how == "genecis":
            return as_png(crop(frame.pixels, box, published=True))
        x, y, width, height = (max(0, round(side)) for side in box)
        if not (cut := frame.pixels[y : y + height, x : x + width]).size:
            raise OutsideImage(f"box {list(box)} has no pixel in an image of {frame.pixels.shape[1::-1]}")
        return as_png(np.ascontiguousarray(cut))
    except OutsideImage as error:
        raise WrongUse(f"{root}/{name}: {error}; {REFETCH}") from error
