"""Bases of sources with one annotation file and one folder of media on this machine."""

from collections.abc import Mapping
from typing import ClassVar

from twinset.manifests.source import MediaSource
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import ImageFolder, Media, MediaFolder

#: Why a name gives no image (`generators.image_files.ImageFiles.read`).
IMAGE_REASONS = {
    "missing-media": "the image is not in the folder of images",
    "broken-media": "its file cannot be read, or is not a whole image",
    "unsafe-path": "the name of the image leads out of the folder of images",
}
SAME_IMAGE = {"same-image": "two of its images are one file, or copies of it"}


class VideoFolderSource(MediaSource, Source):
    """Media are videos, or frames that were dumped from them, in a folder or below it."""

    def media_files(self) -> Media:
        return MediaFolder(self.media)


class ImageFolderSource(MediaSource, Source):
    """Media are images in a folder, in folders below it, or in tars."""

    reasons: ClassVar[Mapping[str, str]] = IMAGE_REASONS

    def media_files(self) -> Media:
        return ImageFolder(self.media)
