"""The planned pair of frames of one video, and how it addresses them."""

from dataclasses import dataclass
from typing import Literal

from twinset.contracts.candidate import CaptionedCandidate

Addressing = Literal["seconds", "numbers", "dump"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePairCandidate(CaptionedCandidate):
    """Two addresses in one video and the captions of both.

    video: name of the video as `shards.media.media_folder.MediaFolder.find` takes it.
    at0, at1: seconds, or 1-based output frame numbers of ffmpeg (Action Genome).
    change: what differs between the twins. provenance: flat canonical JSON, the same keys for all of a source.
    """

    video: str
    at0: float
    at1: float
    change: str
    provenance: str


def dumped_frame(video: str, number: float) -> str:
    """The picture of a frame that was dumped, as Action Genome's official tool names it."""
    return f"{video}/{int(number):06d}.png"
