"""Pairs of two images that annotations name: planned without pixels, and made from files or tars."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from twinset.generators.media_sources import IMAGE_REASONS, SAME_IMAGE, ImageFolderSource
from twinset.manifests.candidate import Candidate, CaptionedCandidate
from twinset.manifests.canonical import canonical_json, identity_of, sample_key, sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.shards.contracts import Generator
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Json, Rejected

if TYPE_CHECKING:
    from twinset.generators.image_files import ImageFiles


class NamedPairSource(ImageFolderSource):
    """A source of pairs whose annotations name two images each."""

    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **SAME_IMAGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPairCandidate(CaptionedCandidate):
    """Two names of images and the captions of both.

    image0, image1: as `shards.media.media_folder.ImageFolder.find` takes them. change: what differs between them.
    provenance: canonical JSON, the same keys for all of a source.
    """

    image0: str
    image1: str
    change: str
    provenance: str


S = TypeVar("S", bound=NamedPairSource)


class NamedPairGenerator(Generator[S]):
    """Makes pairs of two named images; a subclass has a ``version`` and plans."""

    candidate = NamedPairCandidate
    libraries = ("numpy", "pillow")
    _files: ImageFiles | None = None

    def inputs(self) -> str:
        """sha256 of the annotation file."""
        return sha256_of_file(self.source.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their images, or why one has none; images that pairs of one call share are read once."""
        from twinset.generators.image_files import ImageFiles, UnusableImage

        if self._files is None:
            self._files = ImageFiles(self.source.media, upright=True)
        planned = cast(Sequence[NamedPairCandidate], candidates)
        read = self._files.read(name for one in planned for name in (one.image0, one.image1))
        for one in planned:
            first, second = read[one.image0], read[one.image1]
            if isinstance(first, UnusableImage):
                yield first.rejected(one.key)
            elif isinstance(second, UnusableImage):
                yield second.rejected(one.key)
            elif first.source.sha256 == second.source.sha256:
                yield Rejected(one.key, "same-image", f"{first.source.path} and {second.source.path} are the same")
            else:
                yield Pair(
                    key=one.key,
                    group=one.group,
                    split=one.split,
                    change=one.change,
                    image0=first,
                    image1=second,
                    captions0=one.captions0,
                    captions1=one.captions1,
                    provenance=json.loads(one.provenance),
                )

    def planned(
        self,
        identity: tuple[str | int | float, ...],
        images: tuple[str, str],
        captions: tuple[Sequence[str], Sequence[str]],
        change: str = "",
        provenance: Mapping[str, Json] | None = None,
        group: str = "",
    ) -> NamedPairCandidate:
        """A candidate.

        Args:
            identity: tells it from all others of the source, wherever it stands in the file.
            images: names of both.
            captions: of both, best first, at least one each and none blank.
            change: what differs between the images.
            provenance: what else a sample's JSON says of where it comes from, the same keys for all of a source.
            group: what must not be split over shards; pairs of one group follow each other. Its own where empty.

        Raises:
            WrongUse: a caption is absent or blank; a plan leaves such a record out with ``self.excluded.add``.
        """
        key = sample_key(self.name, *identity)
        for number, texts in enumerate(captions):
            if not texts or not all(map(str.strip, texts)):
                raise WrongUse(
                    f"{self.source.annotations}: caption {number} of {list(identity)} is absent or blank; leave such "
                    "records out with self.excluded.add(reason, place)"
                )
        return NamedPairCandidate(
            key=key,
            identity=identity_of(*identity),
            group=group or key,
            split=self.split,
            captions0=tuple(captions[0]),
            captions1=tuple(captions[1]),
            image0=images[0],
            image1=images[1],
            change=change,
            provenance=canonical_json(provenance or {}).decode(),
        )
