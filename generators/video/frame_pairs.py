"""What sources of pairs of frames share: settings, the planned pair of one video, its making, captions as sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Rejected
from twinset.contracts.references import Reference
from twinset.generators.annotation_files import is_media_name, read_json
from twinset.generators.image_files import UnusableImage, VideoFolderSource
from twinset.generators.papers import EQBEN
from twinset.generators.reasons import reasons_beside
from twinset.generators.record_fields import misfit
from twinset.generators.video.timeline import Addressing
from twinset.shards.media.media_folder import MediaFolder

T = TypeVar("T")
#: A frame and its index in the video (from 0, in presentation order), or why an address gave none.
FoundFrame = tuple[Frame, int] | UnusableImage


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

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.video,)


class FramePairSource(VideoFolderSource):
    """Two frames of a video, and what annotations say of each, by EqBen's procedure."""

    paper: ClassVar[Reference | None] = EQBEN
    group = "video"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[dict[str, str]] = reasons_beside(__file__, "frames")

    candidate = FramePairCandidate
    libraries = ("av", "numpy")
    addressing: ClassVar[Addressing] = "seconds"

    @cached_property
    def folder(self) -> MediaFolder:
        """Its videos; one, since it may have to walk the whole tree."""
        return MediaFolder(self.media)

    def inputs(self) -> str:
        return sha256_of_file(self.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """One result a candidate, in order.

        The file of a video is hashed and opened once, each distinct frame is decoded once and shared, and only one
        video's frames are held at a time. Provenance gains ``index0`` and ``index1``, the indices of the frames in the
        video, from 0. Raises OSError for trouble of the machine.
        """
        from twinset.generators.video.frames import find_frames  # decodes with av

        for video, group in groupby(cast(Sequence[FramePairCandidate], candidates), key=lambda pair: pair.video):
            planned = list(group)
            addresses = {at for pair in planned for at in (pair.at0, pair.at1)}
            frames = find_frames(self.folder, video, sorted(addresses), self.addressing)
            for pair in planned:
                yield _made(pair, frames[pair.at0], frames[pair.at1])

    def usable_videos(self, path: Path, videos: Mapping[str, T]) -> Iterator[tuple[str, T, str]]:
        """Names, entries and places of the videos of a file, sorted by name."""
        for video, entry in sorted(videos.items()):
            place = f"{path.name} video {video!r}"
            if is_media_name(video, self.folder):
                yield video, entry, place
            else:
                self.excluded.add("unsafe-path", place)

    def planned(
        self,
        identity: tuple[str | int | float, ...],
        captions: tuple[Sequence[str], Sequence[str]],
        at: tuple[float, float],
        change: str,
        provenance: Mapping[str, Any],
    ) -> FramePairCandidate:
        """A candidate. identity: the video's name first. captions: best first. provenance: see `FramePairCandidate`."""
        video = str(identity[0])
        return FramePairCandidate(
            **self.identified(*identity, group=video),
            captions0=tuple(captions[0]),
            captions1=tuple(captions[1]),
            video=video,
            at0=at[0],
            at1=at[1],
            change=change,
            provenance=canonical_json(provenance).decode(),
        )


def read_form(path: Path, form: TypeAdapter[T], remedy: str) -> T:
    """A JSON file; raises `WrongUse` where it has another form."""
    try:
        return form.validate_python(read_json(path))
    except ValidationError as error:
        raise WrongUse(f"{path}: {misfit(error)[1]}; {remedy}") from error


def _made(pair: FramePairCandidate, first: FoundFrame, second: FoundFrame) -> Pair | Rejected:
    if isinstance(first, UnusableImage):
        return first.rejected(pair.key)
    if isinstance(second, UnusableImage):
        return second.rejected(pair.key)
    (image0, index0), (image1, index1) = first, second
    if image0 is image1:
        detail = f"{pair.video}: {pair.at0:g} and {pair.at1:g} are one frame"
        return Rejected(pair.key, "same-frame", detail)
    provenance = {**json.loads(pair.provenance), "index0": index0, "index1": index1}
    return Pair(**pair.placed, change=pair.change, image0=image0, image1=image1, provenance=provenance)


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # Unicode's category Cc
SPACE_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
STRAY = " .,;:-–—/\\|_"
PAIRED = ("()", "[]", "''", '""')


def as_sentence(*phrases: str) -> str:
    """The phrases joined into one sentence; empty where they hold no letter or digit.

    Only spacing, the first letter and the end are touched: wording stays the annotator's. Marks that end a phrase by
    accident (``pand]``, ``too long/``) go.
    """
    text = " ".join(CONTROL.sub(" ", " ".join(phrases)).split())
    text = SPACE_BEFORE_MARK.sub(r"\1", text).strip(STRAY)
    for pair in PAIRED:
        if text.endswith(pair[1]) and sum(character in pair for character in text) % 2:
            text = text[:-1].rstrip(STRAY)
    if not any(character.isalnum() for character in text):
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in "!?" else ".")
