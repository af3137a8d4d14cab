"""What the three video sources share: settings, captions as sentences, and the planned pair of frames of one video."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.references import reasons_beside
from twinset.generators.image_files import VideoFolderSource
from twinset.generators.papers import EQBEN

Addressing = Literal["seconds", "numbers", "dump"]

#: Why a pair of frames cannot be made.
FRAME_REASONS = reasons_beside(__file__, "frames")


class FramePairSource(VideoFolderSource):
    """A source of EqBen's: two frames of a video, and what annotations say of each."""

    paper = EQBEN
    group = "video"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = FRAME_REASONS


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


def dumped_frame(video: str, number: float) -> str:
    """The picture of a frame that was dumped, as Action Genome's official tool names it."""
    return f"{video}/{int(number):06d}.png"


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # Unicode's category Cc
SPACE_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
ENDS = ".!?"
STRAY = " ,;:-–—/\\|_"
QUOTES = "'\"`"
OPENED_BY = {")": "(", "]": "[", "}": "{"}


def as_sentence(*phrases: str) -> str:
    """The phrases joined into one sentence; empty where they hold no letter or digit.

    Only spacing, the first letter and the end are touched: wording stays the annotator's. Marks that end a phrase by
    accident (``pand]``, ``too long/``) go.
    """
    text = " ".join(CONTROL.sub(" ", " ".join(phrases)).split())
    text = SPACE_BEFORE_MARK.sub(r"\1", text)
    bare = _without_stray_end(text).lstrip(STRAY + ENDS)
    if not any(character.isalnum() for character in bare):
        return ""
    mark = "" if bare[-1] in ENDS else "."
    return bare[0].upper() + bare[1:] + mark


def _without_stray_end(text: str) -> str:
    held, end = Counter(text), len(text)
    while end:
        last = text[end - 1]
        unopened = last in OPENED_BY and held[last] > held[OPENED_BY[last]]
        unpaired = last in QUOTES and held[last] % 2
        doubled = last in ENDS and text[end - 2 : end - 1] in ENDS
        if not (last in STRAY or unopened or unpaired or doubled):
            break
        held[last] -= 1
        end -= 1
    return text[:end]
