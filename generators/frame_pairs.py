"""What the three video sources share: a planned pair of frames of one video, and making it."""

from __future__ import annotations

from dataclasses import dataclass

from shards.samples import CaptionedCandidate


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePairCandidate(CaptionedCandidate):
    """Two addresses in one video and the captions of both.

    video: name of the video as `shards.media.MediaFolder.find` takes it.
    at0, at1: seconds (GEBC, YouCook2) or 1-based output frame numbers of ffmpeg (Action Genome).
    change: what differs between the twins. provenance: flat canonical JSON, the same keys for all of a source.
    """

    video: str
    at0: float
    at1: float
    change: str
    provenance: str
