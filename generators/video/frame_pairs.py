"""What the three video sources share: settings, and the planned pair of frames of one video."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from twinset.generators.media_sources import VideoFolderSource
from twinset.generators.papers import EQBEN
from twinset.manifests.candidate import CaptionedCandidate

Addressing = Literal["seconds", "numbers", "dump"]

#: Which frame a time means (docs/frames.md), for the card.
NEAREST = """\
A time means the frame whose presentation time is nearest, of two equally near ones the earlier, to the microsecond; at
most 0.5 s after the end of the last frame. Time 0 is the start of the file's earliest stream, as in a player.
"""
#: How annotators' phrases become captions (`generators.video.sentences`), for the card.
WORDING = "The words are the annotators'. Only spaces, the first letter and the end are put right."

#: Why a pair of frames cannot be made.
FRAME_REASONS = {
    "missing-media": "the video or frame is not in the media folder",
    "broken-media": "its file cannot be read, or is cut off before the frame",
    "beyond-end": "the video ends before the annotated moment",
    "same-frame": "both moments mean one and the same frame",
    "unsafe-path": "the name of its media leads out of the media folder",
}


class FramePairSource(VideoFolderSource):
    """A source of EqBen's: two frames of a video, and what annotations say of each."""

    paper = EQBEN
    group = "video"
    reasons: ClassVar[Mapping[str, str]] = FRAME_REASONS

    def introduction(self) -> str:
        """As `manifests.source.SourceSettings.introduction`."""
        return "Both images are frames of one video. More can differ between them than what their captions say.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePairCandidate(CaptionedCandidate):
    """Two addresses in one video and the captions of both.

    video: name of the video as `shards.media.media_folder.MediaFolder.find` takes it.
    at0, at1: seconds (GEBC, YouCook2) or 1-based output frame numbers of ffmpeg (Action Genome).
    change: what differs between the twins. provenance: flat canonical JSON, the same keys for all of a source.
    """

    video: str
    at0: float
    at1: float
    change: str
    provenance: str
