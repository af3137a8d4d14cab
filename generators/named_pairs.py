"""Pairs of two images that annotations name: what such sources have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.licences.terms import Terms
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, ImageFolderSource, UnusableImage


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

    @property
    def media_names(self) -> tuple[str, ...]:
        return self.image0, self.image1


def paired(one: NamedPairCandidate, read: Mapping[str, Frame | UnusableImage]) -> Pair | Rejected:
    """A pair with its images, or why one has none. read: what their names give."""
    first, second = read[one.image0], read[one.image1]
    if isinstance(first, UnusableImage):
        return first.rejected(one.key)
    if isinstance(second, UnusableImage):
        return second.rejected(one.key)
    if first.source.sha256 == second.source.sha256:
        return Rejected(one.key, "same-image", f"{first.source.path} and {second.source.path} are the same")
    return Pair(**one.placed, change=one.change, image0=first, image1=second, provenance=json.loads(one.provenance))


class NamedPairSource(ImageFolderSource):
    """A source of pairs whose annotations name two images each."""

    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **SAME_IMAGE}

    candidate = NamedPairCandidate
    libraries = ("numpy", "pillow")

    def inputs(self) -> str:
        return sha256_of_file(self.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their images, or why one has none; images that pairs of one call share are read once."""
        planned = cast(Sequence[NamedPairCandidate], candidates)
        read = self._files.read(name for one in planned for name in (one.image0, one.image1))
        for one in planned:
            yield paired(one, read)

    @cached_property
    def _files(self) -> ImageFiles:
        return ImageFiles(self.media, upright=True)

    def planned(
        self,
        identity: tuple[str | int | float, ...],
        images: tuple[str, str],
        captions: tuple[Sequence[str], Sequence[str]],
        change: str = "",
        provenance: Mapping[str, Json] | None = None,
        group: str = "",
        terms: Terms | None = None,
        split: str = "",
    ) -> NamedPairCandidate:
        """A candidate.

        Args:
            identity: tells it from all others of the source, wherever it stands in the file.
            images: names of both.
            captions: of both, best first, at least one each and none blank.
            change: what differs between the images.
            provenance: what else a sample's JSON says of where it comes from, the same keys for all of a source.
            group: what must not be split over shards; pairs of one group follow each other. Its own where empty.
            terms: that its record states, where these are not the source's.
            split: that of the subset where empty.

        Raises:
            WrongUse: a caption is absent or blank; a plan leaves such a record out with ``self.excluded.add``.
        """
        for number, texts in enumerate(captions):
            if not texts or not all(map(str.strip, texts)):
                raise WrongUse(
                    f"{self.annotations}: caption {number} of {list(identity)} is absent or blank; leave such "
                    "records out with self.excluded.add(reason, place)"
                )
        identified = self.identified(*identity, group=group, terms=terms)
        identified["split"] = split or self.stage.split
        return NamedPairCandidate(
            **identified,
            captions0=tuple(captions[0]),
            captions1=tuple(captions[1]),
            image0=images[0],
            image1=images[1],
            change=change,
            provenance=canonical_json(provenance or {}).decode(),
        )
