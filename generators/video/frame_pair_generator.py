"""What the generators of the three video sources share: pairs of frames planned from annotations, and made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.annotation_files import is_media_name, refuse_unusable
from twinset.generators.video.frame_pairs import Addressing, FramePairCandidate, FramePairSource, dumped_frame
from twinset.shards.contracts import Context, Generator
from twinset.shards.media.media_folder import MediaFolder

S = TypeVar("S", bound=FramePairSource)


class FramePairGenerator(Generator[S]):
    """Plans pairs of frames from annotations, and has them decoded."""

    candidate = FramePairCandidate
    libraries = ("av", "numpy")

    def __init__(self, source: S, context: Context) -> None:
        super().__init__(source, context)
        self.media = MediaFolder(source.media)  # one, since it may have to walk the whole tree

    def inputs(self) -> str:
        return sha256_of_file(self.source.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        from twinset.generators.video.frame_making import make_pairs  # decodes with av

        return make_pairs(cast(Sequence[FramePairCandidate], candidates), self.media, self.addressing())

    def addressing(self) -> Addressing:
        """How candidates address frames (`generators.video.frame_making.make_pairs`)."""
        return "seconds"

    def media_names(self, candidate: Candidate) -> tuple[str, ...]:
        one = cast(FramePairCandidate, candidate)
        if self.addressing() == "dump":
            return dumped_frame(one.video, one.at0), dumped_frame(one.video, one.at1)
        return (one.video,)

    def usable_videos(
        self, path: Path, videos: Mapping[str, Any], is_usable: Callable[[Any], bool], remedy: str
    ) -> Iterator[tuple[str, str]]:
        """Names and places of the videos of a file's JSON object, sorted; raises `WrongUse` where none can be used."""
        usable = False
        for video in sorted(videos):
            place = f"{path.name} video {video!r}"
            if not is_media_name(video, self.media):
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
