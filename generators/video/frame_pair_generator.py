"""What the three video sources share: settings, and pairs of frames planned from annotations, and made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, cast

from twinset.generators.annotation_files import is_media_name, refuse_unusable
from twinset.generators.media_sources import VideoFolderSource
from twinset.generators.papers import EQBEN
from twinset.manifests.candidate import Candidate, CaptionedCandidate
from twinset.manifests.canonical import canonical_json, identity_of, sample_key, sha256_of_file
from twinset.shards.contracts import Context, Generator
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Rejected
from twinset.shards.media.media_folder import MediaFolder

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


S = TypeVar("S", bound=FramePairSource)


class FramePairGenerator(Generator[S]):
    """Plans pairs of frames from one annotation file, and has them decoded."""

    candidate = FramePairCandidate
    libraries = ("av", "numpy")

    def __init__(self, source: S, context: Context) -> None:
        super().__init__(source, context)
        self.media = MediaFolder(source.media)  # one, since it may have to walk the whole tree

    def inputs(self) -> str:
        """sha256 of the annotation file."""
        return sha256_of_file(self.source.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their frames (`generators.video.frame_making.make_pairs`)."""
        from twinset.generators.video.frame_making import make_pairs  # decodes with av

        return make_pairs(cast(Sequence[FramePairCandidate], candidates), self.media, self.addressing())

    def addressing(self) -> Addressing:
        """How candidates address frames (`generators.video.frame_making.make_pairs`)."""
        return "seconds"

    def usable_videos(
        self, videos: Mapping[str, Any], is_usable: Callable[[Any], bool], remedy: str
    ) -> Iterator[tuple[str, str]]:
        """Names and places of the videos of a JSON object, sorted; raises `WrongUse` where none can be used."""
        path, usable = self.source.annotations, False
        for video in sorted(videos):
            place = f"{path.name} video {video!r}"
            if not is_media_name(video):
                self.excluded.add("unsafe-path", place)
            elif not is_usable(videos[video]):
                self.excluded.add("video-malformed", place)
            else:
                usable = True
                yield video, place
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
        video = str(identity[0])
        return FramePairCandidate(
            key=sample_key(self.name, *identity),
            identity=identity_of(*identity),
            group=video,
            split=self.split,
            captions0=captions[0],
            captions1=captions[1],
            video=video,
            at0=at[0],
            at1=at[1],
            change=change,
            provenance=canonical_json(provenance).decode(),
        )
