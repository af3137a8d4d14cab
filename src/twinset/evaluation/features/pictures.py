"""Pictures of a benchmark as they are read: their names in a store, and their pixels."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from twinset.contracts.errors import WrongUse, in_words
from twinset.evaluation.examples import Picture
from twinset.evaluation.features.store import image_name
from twinset.shards.media.decode import UnreadableImage, open_image

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")
REMEMBERED = 1 << 16  # names of pictures by where they lie: some 15 MB
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
DECODERS = 4  # threads; Pillow releases the interpreter while it decodes


class Unusable(Exception):
    """A picture that cannot be read or decoded. reason: as `evaluation.examples.LeftOut`."""

    def __init__(self, where: str, reason: str, problem: str) -> None:
        super().__init__(where, reason, problem)
        self.where, self.reason, self.problem = where, reason, problem


def decode(where: str, data: bytes) -> Image:
    """An image as RGB, not rotated by its EXIF orientation: the transforms of open_clip and transformers do so too.
    Raises `Unusable`: it is damaged, cut short, not an image, or too large to be one of a benchmark.
    """
    try:
        return open_image(data, FORMATS).convert("RGB")
    except UnreadableImage as error:
        raise Unusable(where, "undecodable image", str(error)) from error


class Pictures:
    """Reads pictures one after the other, since those of one tar share its file; decodes them in threads."""

    def __init__(self) -> None:
        # Not the errors themselves: their tracebacks would hold images.
        self._names: dict[str, bytes | tuple[str, str, str]] = {}
        self._undecodable: dict[bytes, tuple[str, str, str]] = {}
        self._decoders = ThreadPoolExecutor(DECODERS, "decode")

    def name(self, picture: Picture) -> bytes:
        """Name of a picture in a store; raises `Unusable` where it cannot be read, or did not decode."""
        found = self._names.get(picture.where)
        if found is None:
            found = self._read_name(picture)
            self._names[picture.where] = found
            if len(self._names) > REMEMBERED:
                del self._names[next(iter(self._names))]
        if isinstance(found, bytes) and found in self._undecodable:
            _, reason, problem = self._undecodable[found]
            raise Unusable(picture.where, reason, problem)
        if isinstance(found, tuple):
            raise Unusable(*found)
        return found

    def _read_name(self, picture: Picture) -> bytes | tuple[str, str, str]:
        try:
            return image_name(picture.read())
        except (OSError, WrongUse) as error:
            return picture.where, "unreadable image", in_words(error)

    def decoded(
        self, pictures: Iterable[tuple[bytes, Picture]], use: Callable[[Image], T], ahead: int
    ) -> Iterator[tuple[bytes, Picture, T]]:
        """Pictures in order with what ``use`` makes of each image; those that do not decode are left out.

        Args:
            pictures: with their names.
            use: called in threads.
            ahead: pictures that may be decoded before they are asked for.
        """
        waiting: deque[tuple[bytes, Picture, Future[T]]] = deque()
        for name, picture in pictures:
            data = picture.read()
            if image_name(data) != name:
                raise WrongUse(f"{picture.where}: changed while it was read; run again when nothing writes to it")
            waiting.append((name, picture, self._decoders.submit(_decode_and, use, picture.where, data)))
            if len(waiting) > ahead:
                yield from self._result(*waiting.popleft())
        while waiting:
            yield from self._result(*waiting.popleft())

    def _result(self, name: bytes, picture: Picture, future: Future[T]) -> Iterator[tuple[bytes, Picture, T]]:
        try:
            yield name, picture, future.result()
        except Unusable as unusable:
            self._undecodable[name] = unusable.where, unusable.reason, unusable.problem

    def close(self) -> None:
        """End the threads."""
        self._decoders.shutdown(cancel_futures=True)


def _decode_and(use: Callable[[Image], T], where: str, data: bytes) -> T:
    return use(decode(where, data))
