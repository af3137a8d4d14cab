"""Bases of sources with one annotation file and one folder of media on this machine."""

from __future__ import annotations

from manifests.source import MediaSource
from shards.contracts import Source
from shards.media.image_folder import ImageFolder
from shards.media.media_folder import MediaFolder
from shards.media.source_media import Media


class VideoFolderSource(MediaSource, Source):
    """Media are videos, or frames that were dumped from them, in a folder or below it."""

    def media_files(self) -> Media:
        """As `shards.contracts.Source.media_files`."""
        return MediaFolder(self.media)


class ImageFolderSource(MediaSource, Source):
    """Media are images in a folder, in folders below it, or in tars."""

    def media_files(self) -> Media:
        """As `shards.contracts.Source.media_files`."""
        return ImageFolder(self.media)
