"""Pictures of benchmarks: images found by name, arrays, crops. Bytes are read when a picture is, never before."""

import io
from collections.abc import Sequence
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
from twinset.shards.media.media_folder import EscapesRoot, ImageFolder, StoredImage
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

    def __init__(self, root: Path, folders: Sequence[str] = ()) -> None:
        """folders: below the root, looked into first."""
        first = [root / folder for folder in folders if (root / folder).is_dir()]
        self._places = [ImageFolder(place) for place in dict.fromkeys([*first, root])]
        self._find = lru_cache(REMEMBERED)(self._looked_up)

    def find(self, name: str, where: str) -> Picture | None:
        """The picture of a name; None when it is not there.

        Args:
            name: file name, with folders or without, with a suffix or without.
            where: the record that names it, for messages.

        Raises:
            WrongUse: the name leads out of the folder.
        """
        found = self._located(name, where)
        if found is None:
            return None
        root, stored = found
        read = _read_array if stored.name.endswith(ARRAY) else _read
        return Picture(f"{root}/{stored.name}", partial(read, stored))

    def find_crop(self, name: str, box: Box, where: str, how: CutOut = "genecis") -> Picture | None:
        """As `find`, of a file called just so: a box (x, y, width, height; pixels) cut out of it.

        how: with its surroundings, as GeneCIS does, or the ``box`` alone, as ARO does.
        """
        found = self._located(name, where, exact=True)
        if found is None:
            return None
        root, stored = found
        shown = ",".join(f"{number:g}" for number in box)
        return Picture(f"{root}/{stored.name}#{shown}", partial(_read_crop, root, stored.name, box, how))

    def _located(self, name: str, where: str, exact: bool = False) -> tuple[Path, StoredImage] | None:
        """exact: whether the file must be called so, and not as COCO calls the image of the same number."""
        with naming(where, EscapesRoot):
            found = self._find(name)
        if found is not None and exact and PurePosixPath(found[1].name).name != PurePosixPath(name).name:
            return None
        return found

    def _looked_up(self, name: str) -> tuple[Path, StoredImage] | None:
        for place in self._places:
            if (found := place.find(name)) is not None:
                return place.root, found
        return None


class UnreadImages(Images):
    """Stands for images of which only the captions are asked for: finds any, and looks for none."""

    def __init__(self) -> None:
        """Nothing is searched."""

    def find(self, name: str, where: str) -> Picture:
        """As `Images.find`, but never None."""
        return Picture(name, partial(_refuse, name))

    def find_crop(self, name: str, box: Box, where: str, how: CutOut = "genecis") -> Picture:
        return self.find(name, where)


def _refuse(name: str) -> bytes:
    raise WrongUse(f"{name}: the benchmark was opened for its captions alone")


def as_png(pixels: Pixels) -> bytes:
    """(height, width, 3) uint8 RGB as a PNG, which keeps every pixel."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _read(stored: StoredImage) -> bytes:
    """Bytes of a file as it is now, or of a member of a tar."""
    member = stored.offset > 0  # a tar begins with a header
    if member and stored.size > MEMBER_LIMIT:
        raise WrongUse(f"{stored.path}: {stored.name} has {stored.size:,} bytes, at most {MEMBER_LIMIT:,} are read")
    with stored.path.open("rb") as stream:
        stream.seek(stored.offset)
        content = stream.read(stored.size if member else MEMBER_LIMIT + 1)
    if member and len(content) < stored.size:
        raise WrongUse(f"{stored.path}: cut short within {stored.name}; {REFETCH}")
    if len(content) > MEMBER_LIMIT:
        raise WrongUse(f"{stored.path}: over {MEMBER_LIMIT:,} bytes, more than any image needs; {REFETCH}")
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
