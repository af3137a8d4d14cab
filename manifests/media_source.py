"""The settings that most sources have: an annotation file, and a folder of what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from manifests.locations import Location
from manifests.settings import Settings


class MediaSource(Settings):
    """A source with an annotation file and a folder of media.

    annotations: the source's annotation file. media: folder of its videos, dumped frames or images.
    licence: of the source's media, copied into every sample and the card.
    """

    annotations: Location
    media: Location
    licence: str

    #: Where things lie is not part of what is made: annotations enter the digest by content, media by their sha256.
    locations: ClassVar[tuple[str, ...]] = ("annotations", "media")

    #: Nor is how it is made: a device that rounds differently is named by the runtime class.
    execution: ClassVar[tuple[str, ...]] = ()

    #: Whether its samples are drawn, without annotations, rather than found. Whether it could plan without end.
    drawn: ClassVar[bool] = False
    endless: ClassVar[bool] = False

    @property
    def places(self) -> tuple[str, ...]:
        """The settings that name files of the user's."""
        return self.locations

    @property
    def planned_from(self) -> str:
        """What a plan is read from, for messages."""
        return str(self.annotations)

    @property
    def media_root(self) -> Path | None:
        """Folder of the files that samples are made from; None where they are not on this machine."""
        return self.media
