"""What sources of pairs of frames share: settings, captions as sentences, and the planned pair of one video."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.references import Reference, reasons_beside
from twinset.generators.annotation_files import is_media_name, refuse_unusable
from twinset.generators.image_files import VideoFolderSource
from twinset.generators.papers import EQBEN
from twinset.generators.video.frame_pair import Addressing, FramePairCandidate, dumped_frame
from twinset.shards.media.media_folder import MediaFolder

T = TypeVar("T")

#: Why a pair of frames cannot be made.
FRAME_REASONS = reasons_beside(__file__, "frames")


class FramePairSource(VideoFolderSource):
    """Two frames of a video, and what annotations say of each, by EqBen's procedure."""

    paper: ClassVar[Reference | None] = EQBEN
    group = "video"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = FRAME_REASONS

    candidate = FramePairCandidate
    libraries = ("av", "numpy")

    @cached_property
    def folder(self) -> MediaFolder:
        """Its videos; one, since it may have to walk the whole tree."""
        return MediaFolder(self.media)

    def inputs(self) -> str:
        return sha256_of_file(self.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        from twinset.generators.video.frame_making import make_pairs  # decodes with av

        return make_pairs(cast(Sequence[FramePairCandidate], candidates), self.folder, self.addressing())

    def addressing(self) -> Addressing:
        """How candidates address frames (`generators.video.frame_making.make_pairs`)."""
        return "seconds"

    def media_names(self, candidate: Candidate) -> tuple[str, ...]:
        pair = cast(FramePairCandidate, candidate)
        if self.addressing() == "dump":
            return dumped_frame(pair.video, pair.at0), dumped_frame(pair.video, pair.at1)
        return (pair.video,)

    def usable_videos(
        self, path: Path, videos: Mapping[str, Any], entry: TypeAdapter[T], remedy: str
    ) -> Iterator[tuple[str, T, str]]:
        """Names, entries and places of the videos of a file's JSON object, sorted by name.

        Raises `WrongUse` where none can be used.
        """
        usable = False
        for video in sorted(videos):
            place = f"{path.name} video {video!r}"
            if not is_media_name(video, self.folder):
                self.excluded.add("unsafe-path", place)
                continue
            try:
                checked = entry.validate_python(videos[video])
            except ValidationError:
                self.excluded.add("video-malformed", place)
                continue
            usable = True
            yield video, checked, place
        if not usable:
            refuse_unusable(path, self.excluded, remedy)

    def planned(
        self,
        identity: tuple[str | int | float, ...],
        captions: tuple[tuple[str, ...], tuple[str, ...]],
        at: tuple[float, float],
        change: str,
        provenance: Mapping[str, Any],
    ) -> FramePairCandidate:
        """A candidate of one video.

        Args:
            identity: tells it from all others of the source; the video's name first.
            captions: of both frames, best first.
            at: addresses of both frames.
            change: what differs between the twins.
            provenance: flat, the same keys for all of a source.
        """
        return FramePairCandidate(
            **self.identified(*identity, group=str(identity[0])),
            captions0=captions[0],
            captions1=captions[1],
            video=str(identity[0]),
            at0=at[0],
            at1=at[1],
            change=change,
            provenance=canonical_json(provenance).decode(),
        )


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
