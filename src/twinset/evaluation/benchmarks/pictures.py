"""Pictures of benchmarks: images found by name, arrays, crops. Bytes are read when a picture is, never before."""

import io
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from tokenize import TokenError

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


class Images:
    """The images below the folder of a benchmark, found by the names that its annotations use.

    They may lie in folders of any depth, links and tars (`shards.media.media_folder.ImageFolder`).
    """

    def __init__(self, root: Path, unread: bool = False) -> None:
        """unread: whether none is looked for, and each taken to be there, where only the captions are asked for."""
        self.root, self._unread = root, unread
        self._find = lru_cache(REMEMBERED)(ImageFolder(root).find)

    def find(self, name: str, where: str, box: Box | None = None) -> Picture | None:
        """The picture of a name; None when it is not there.

        Args:
            name: file name, with folders or without, with a suffix or without.
            where: the record that names it, for messages.
            box: x, y, width, height in pixels, which is cut out with its surroundings, as GeneCIS does, of the file
                that is called just so, and not of COCO's image of the same number.

        Raises:
            WrongUse: the name leads out of the folder.
        """
        if self._unread:
            return Picture(name, partial(_refuse, name))
        with naming(where, EscapesRoot):
            stored = self._find(name)
        if stored is None:
            return None
        if box is None:
            read = _read_array if stored.name.endswith(ARRAY) else _read
            return Picture(f"{self.root}/{stored.name}", partial(read, stored))
        if PurePosixPath(stored.name).name != PurePosixPath(name).name:
            return None
        shown = ",".join(f"{number:g}" for number in box)
        return Picture(f"{self.root}/{stored.name}#{shown}", partial(_read_crop, self.root, stored.name, box))


def image_folders(data: Path, parents: Sequence[str], wanted: Callable[[str], bool]) -> dict[Path, list[Path]]:
    """Folders with a wanted name that hold images, each with these, in the first parent that has any; all in
    alphabetical order.
    """
    for parent in parents:
        filled: dict[Path, list[Path]] = {}
        for folder in sorted(path for path in (data / parent).glob("*") if wanted(path.name) and path.is_dir()):
            if images := sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES):
                filled[folder] = images
        if filled:
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
    """Bytes of a file or of a member of a tar."""
    if stored.size > MEMBER_LIMIT:
        raise WrongUse(f"{stored.path}: {stored.name} has over {MEMBER_LIMIT:,} bytes, more than any image; {REFETCH}")
    if len(content := stored.read()) < stored.size:
        raise WrongUse(f"{stored.path}: cut short within {stored.name}; {REFETCH}")
    return content


def _read_array(stored: StoredImage) -> bytes:
    """A frame of EqBen's YouCook2: an array (height, width, 3) uint8, blue first, as OpenCV reads video."""
    try:
        bgr = npy.read_array(io.BytesIO(_read(stored)), allow_pickle=False)
    except (ValueError, TypeError, EOFError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise WrongUse(f"{stored.path}: not an array of numbers ({error}); {REFETCH}") from error
    if bgr.ndim != 3 or bgr.shape[2] != 3 or bgr.dtype != np.uint8 or not bgr.size:
        raise WrongUse(f"{stored.path}: an array {bgr.shape} of {bgr.dtype}, not a BGR image; {REFETCH}")
    return as_png(np.ascontiguousarray(bgr[:, :, ::-1]))


def _read_crop(root: Path, name: str, box: Box) -> bytes:
    frame = ImageFiles(root, upright=False).read([name])[name]
    if isinstance(frame, UnusableImage):
        raise WrongUse(f"{root}: {frame.detail}")
    try:
        return as_png(crop(frame.pixels, box, published=True))
    except OutsideImage as error:
        raise WrongUse(f"{root}/{name}: {error}; {REFETCH}") from error
