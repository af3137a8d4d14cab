"""Pictures of a benchmark as they are read: their names in a store, and their pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from twinset.contracts.errors import WrongUse, in_words
from twinset.evaluation.examples import Picture
from twinset.evaluation.features.store import image_name
from twinset.shards.media.decode import UnreadableImage, open_image

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
DECODERS = 4  # threads; Pillow releases the interpreter while it decodes
DECODED = 64  # pictures that are decoded together, while those before them are used


class Unusable(Exception):
    """A picture that cannot be read or decoded. reason: as `evaluation.examples.LeftOut`."""

    def __init__(self, where: str, reason: str, problem: str = "") -> None:
        super().__init__(where, reason, problem)
        self.where, self.reason, self.problem = where, reason, problem


def decode(where: str, data: bytes) -> Image:
    """An image as RGB, not rotated by its EXIF orientation, as open_clip and transformers do; raises `Unusable`."""
    try:
        return open_image(data, FORMATS).convert("RGB")
    except UnreadableImage as error:
        raise Unusable(where, "undecodable image", str(error)) from error


class Pictures:
    """Reads pictures one after the other, since those of one tar share its file; decodes them in threads."""

    def __init__(self) -> None:
        self._names: dict[str, bytes | Unusable] = {}  # by where they lie
        self._undecodable: dict[bytes, str] = {}  # what is wrong, by name

    def name(self, picture: Picture) -> bytes:
        """Name of a picture in a store; raises `Unusable` where it cannot be read, or did not decode."""
        if isinstance(name := self.name_or_problem(picture), Unusable):
            raise name
        return name

    def name_or_problem(self, picture: Picture) -> bytes | Unusable:
        """As `name`, with the error in place of the name."""
        where = picture.where
        if where not in self._names:
            try:
                self._names[where] = image_name(picture.read())
            except (OSError, WrongUse) as error:
                self._names[where] = Unusable(where, "unreadable image", in_words(error))
        name = self._names[where]
        if isinstance(name, bytes) and name in self._undecodable:
            return Unusable(where, "undecodable image", self._undecodable[name])
        return name

    def decoded(
        self, pictures: Iterable[tuple[bytes, Picture]], use: Callable[[Image], T]
    ) -> Iterator[tuple[bytes, Picture, T]]:
        """Pictures in order, by name, with what ``use`` makes of each image in threads; those that do not decode are
        left out. Raises `WrongUse`: a picture is another than it was when it was named.
        """

        def used(name: bytes, picture: Picture, data: bytes) -> T | Unusable:
            if image_name(data) != name:
                raise WrongUse(f"{picture.where}: changed while it was read; run again when nothing writes to it")
            try:
                return use(decode(picture.where, data))
            except Unusable as unusable:
                return unusable

        with ThreadPoolExecutor(DECODERS, "decode") as decoders:
            for lot in lots(pictures, DECODED):
                names, shown = zip(*lot, strict=True)
                results = decoders.map(used, names, shown, [picture.read() for picture in shown])
                for name, picture, result in zip(names, shown, results, strict=True):
                    if isinstance(result, Unusable):
                        self._undecodable[name] = result.problem
                    else:
                        yield name, picture, result


def lots(inputs: Iterable[T], size: int) -> Iterator[list[T]]:
    """Inputs in lists of a size; the last may be shorter."""
    left = iter(inputs)
    while lot := list(islice(left, size)):
        yield lot
