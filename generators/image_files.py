"""Bases of sources with a folder of media; images by name or id, from files or tars.

An image is decoded once for all that ask for it together, or there is a reason why there is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from PIL import Image

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels, Rejected
from twinset.contracts.locations import Location
from twinset.contracts.source import AnnotationFile, MediaFolderPath, Place
from twinset.generators.reasons import reasons_beside
from twinset.shards.contracts import Source
from twinset.shards.media.decode import FORMATS, MOST_PIXELS, UnreadableImage, open_image
from twinset.shards.media.media_folder import FILE_ERRORS, EscapesRoot, ImageFolder, Media, MediaFolder, StoredImage
from twinset.shards.storage.tar_reader import MEMBER_LIMIT

#: Why a name gives no image (`generators.image_files.ImageFiles.read`).
IMAGE_REASONS = reasons_beside(__file__, "images")
SAME_IMAGE = reasons_beside(__file__, "same-image")


class MediaSource(Source):
    """A source with one annotation file and one folder of media.

    annotations: the source's annotation file. media: folder of its videos, dumped frames or images. licence: of the
    media, copied into every sample and the card.
    """

    annotations: AnnotationFile
    media: MediaFolderPath


class VideoFolderSource(MediaSource):
    """Media are videos, or frames that were dumped from them, in a folder or below it."""

    def media_files(self) -> Media:
        return MediaFolder(self.media)


class ImageFolderSource(MediaSource):
    """Media are images in a folder, in folders below it, or in tars."""

    reasons: ClassVar[Mapping[str, str]] = IMAGE_REASONS

    def media_files(self) -> Media:
        return ImageFolder(self.media)


@dataclass(frozen=True, slots=True)
class UnusableImage:
    """Why a name gave no image; the fields of `contracts.kinds.samples.Rejected`."""

    reason: str
    detail: str
    media: str | None = None
    media_size: int | None = None

    @classmethod
    def refused(cls, error: OSError, name: str, size: int | None) -> UnusableImage:
        """For a file that the operating system refuses; raises ``error`` again if the machine is at fault."""
        if error.errno not in FILE_ERRORS:
            raise error
        return cls("broken-media", f"{name}: {error.strerror}; make it readable", name, size)

    def rejected(self, key: str) -> Rejected:
        """The rejection of a candidate that needs the image."""
        return Rejected(key, self.reason, self.detail, self.media, self.media_size)


class ImageFiles:
    """The images of a folder (`shards.media.media_folder.ImageFolder`), read and decoded.

    upright: whether a picture is turned as its EXIF orientation says. Boxes and masks count the stored pixels, as
    COCO's and Visual Genome's tools do, and need it as it lies; where it is shown whole, what twinset stores says no
    more about its orientation.
    """

    def __init__(self, root: Path, upright: bool) -> None:
        self.folder = ImageFolder(root)
        self.upright = upright

    def read(self, names: Iterable[str]) -> dict[str, Frame | UnusableImage]:
        """Each name's frame, or what is wrong with it; names of one file share its frame, which is read once.

        Frames are named by their files, have no time (pts -1) and their pixels are RGB, on white. Reasons:
        `generators.image_files.IMAGE_REASONS`; broken is what is not a whole JPEG, PNG or WebP, has more than
        `MOST_PIXELS` or `MEMBER_LIMIT` bytes, or cannot be read. Raises OSError for trouble of the machine, such as a
        failing disk.
        """
        read: dict[str, Frame | UnusableImage] = {}  # by the names of the files
        return {name: self._found(name, read) for name in dict.fromkeys(names)}

    def _found(self, name: str, read: dict[str, Frame | UnusableImage]) -> Frame | UnusableImage:
        size = None
        try:
            if (stored := self.folder.find(name)) is None:
                # Rows hold what is said here, and are the same wherever the folder lies.
                problem = f"no image {name} in the folder of images; add it and build again"
                return UnusableImage("missing-media", self.folder.absent(name, problem), name)
            size = stored.size
            if stored.name not in read:
                read[stored.name] = self._decoded(stored)
            return read[stored.name]
        except EscapesRoot as error:
            return UnusableImage("unsafe-path", str(error))
        except OSError as error:
            return UnusableImage.refused(error, name, size)

    def _decoded(self, stored: StoredImage) -> Frame | UnusableImage:
        if stored.size > MEMBER_LIMIT:
            problem = f"{stored.size:,} bytes, at most {MEMBER_LIMIT:,} are read"
        else:
            content = stored.read()
            source = MediaFile(stored.name, len(content), hashlib.sha256(content).hexdigest())
            try:
                return Frame(stored.name, rgb(open_image(content, upright=self.upright)), -1.0, source)
            except UnreadableImage as error:
                problem = f"not a whole {', '.join(FORMATS)} ({error.kind}); convert it or fetch it again"
                if error.size is not None:
                    problem = f"{error.size[0]} x {error.size[1]} pixels, at most {MOST_PIXELS:,}"
        return UnusableImage("broken-media", f"{stored.name}: {problem}", stored.name, stored.size)


class OptionalImages(Source):
    """A source of samples that may have an image each, which is the one medium that their candidates name.

    images: folder of the images, of folders of them, or of tars such as img2dataset's, which are read where they lie;
    without it an index is made.
    """

    images: Annotated[Location, Place("folder", "media")] | None = None

    libraries: ClassVar[tuple[str, ...]] = ("numpy", "pillow")

    def media_files(self) -> Media | None:
        return ImageFolder(self.images) if self.images is not None else None

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        """Samples with their images, or why one has none (`generators.image_files.ImageFiles.read`)."""
        read: Mapping[str, Frame | UnusableImage] = {}
        if self._images is not None:
            read = self._images.read(name for candidate in candidates for name in candidate.media_names)
        for candidate in candidates:
            image = read.get(candidate.media_names[0])
            yield image.rejected(candidate.key) if isinstance(image, UnusableImage) else self.sample(candidate, image)

    def sample(self, candidate: Any, image: Frame | None) -> Sample:
        """What is made of a candidate. image: None where an index is made."""
        raise NotImplementedError(f"{type(self).__name__} has no method sample")

    @cached_property
    def _images(self) -> ImageFiles | None:
        return ImageFiles(self.images, upright=True) if self.images is not None else None


def looked_for_by(image: str, image_id: str) -> str:
    """The name that an image is looked for by: its place as the captions' source names it, else its id."""
    return image if image and "://" not in image else image_id


def rgb(picture: Image.Image) -> Pixels:
    """(height, width, 3) uint8."""
    if picture.mode.startswith("I"):  # 16 bits of grey, which Pillow would clip instead of scaling
        grey = (np.asarray(picture, dtype=np.uint32) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    return np.array(picture.convert("RGB"), dtype=np.uint8)
