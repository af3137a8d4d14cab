"""Pairs of two images that annotations name: what such sources have in common, and your own pairs, listed in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

from twinset.contracts.candidate import SPLIT, Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, sample_key, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.references import Reference
from twinset.contracts.source import Settings
from twinset.generators.annotation_files import (
    RECORD_REASONS,
    TERM_REASONS,
    Met,
    Skipped,
    is_media_name,
    read_records,
    text_of,
)
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, ImageFolderSource, UnusableImage
from twinset.generators.licences import terms_named
from twinset.generators.reasons import reasons_beside

NEEDED = ("id", "image0", "image1", "caption0", "caption1")


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


def paired(candidate: NamedPairCandidate, read: Mapping[str, Frame | UnusableImage]) -> Pair | Rejected:
    """A pair with its images, or why one has none. read: what their names give."""
    first, second = read[candidate.image0], read[candidate.image1]
    if isinstance(first, UnusableImage):
        return first.rejected(candidate.key)
    if isinstance(second, UnusableImage):
        return second.rejected(candidate.key)
    if first.source.sha256 == second.source.sha256:
        return Rejected(candidate.key, "same-image", f"{first.source.path} and {second.source.path} are the same")
    provenance = json.loads(candidate.provenance)
    return Pair(**candidate.placed, change=candidate.change, image0=first, image1=second, provenance=provenance)


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
        read = self._files.read(name for candidate in planned for name in candidate.media_names)
        yield from (paired(candidate, read) for candidate in planned)

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
        """
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


class Fields(Settings):
    """What the fields of a record are called. All but the first five may be absent.

    id: of its id. image0, image1: of the two images. caption0, caption1: of their captions. change: what differs, or a
    category. group: of pairs that are never split over splits or shards. split: its split, the subset's where empty.
    licence, credit, source_url: of its images, those of the source where empty.
    """

    id: str = "id"
    image0: str = "image0"
    image1: str = "image1"
    caption0: str = "caption0"
    caption1: str = "caption1"
    change: str = "change"
    group: str = "group"
    split: str = "split"
    licence: str = "licence"
    credit: str = "credit"
    source_url: str = "source_url"


class ImagePairs(NamedPairSource):
    """Pairs on disk.

    annotations: CSV or TSV with names of columns, a JSON list of objects, JSON lines or Parquet. An image is a path
    below ``media``, or a name that is found there (`shards.media.media_folder.ImageFolder.find`). A caption is text, or
    a list of texts, best first.
    media: folder of the images, of folders of them, or of tars. fields: what the fields are called.
    """

    kind: Literal["image-pairs"]
    fields: Fields = Fields()

    reference = Reference("a list of image pairs")
    reasons: ClassVar[Mapping[str, str]] = {
        **NamedPairSource.reasons,
        **RECORD_REASONS,
        **TERM_REASONS,
        **reasons_beside(__file__, "image-pairs"),
    }

    version = 5

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice, then those of scattered groups, from memory; raises
        `WrongUse` where the file cannot be read."""
        ids, groups, scattered, last = Met(), Met(), set[str](), ""
        for _, record, _ in self._records():
            if (group := record["group"]) and group != last and groups.before(group):
                scattered.add(group)
            last = group
        apart, split_of = dict[str, list[NamedPairCandidate]](), dict[str, str]()
        for place, record, terms in self._records():
            name, group = record["id"], record["group"]
            if isinstance(terms, str):
                self.excluded.add(terms, place)
            elif ids.before(name):
                self.excluded.add("repeated-id", f"{place} (id {name[:100]})")
            elif group and split_of.setdefault(group, record["split"]) != record["split"]:
                self.excluded.add("other-split", f"{place} (group {group[:100]})")
            elif group in scattered:
                apart.setdefault(group, []).append(self._planned(record, terms))
            else:
                yield self._planned(record, terms)
        for members in apart.values():
            yield from members

    def _planned(self, record: Mapping[str, Any], terms: Terms) -> NamedPairCandidate:
        return self.planned(
            identity=(record["id"],),
            images=(record["image0"], record["image1"]),
            captions=(record["caption0"], record["caption1"]),
            change=record["change"],
            provenance={name: record[name] for name in ("id", "image0", "image1")},
            group=record["group"] and sample_key(self.stage.name, "group", record["group"]),
            terms=terms,
            split=record["split"],
        )

    def _records(self) -> Iterator[tuple[str, Mapping[str, Any], Terms | str]]:
        """Place of each record, its fields by the names that `Fields` has, and its terms or why it is left out."""
        names, renamed = self.fields.model_dump(), self.fields.model_dump(exclude_defaults=True)
        needed = [name for key, name in names.items() if key in (*NEEDED, *renamed)]
        for place, read in read_records(self.annotations, needed, tuple(names.values()), "correct source.fields"):
            given = {} if isinstance(read, Skipped) else read
            record: dict[str, Any] = {key: text_of(given.get(name)) for key, name in names.items()}
            for caption in ("caption0", "caption1"):
                stated = given.get(names[caption])
                texts = stated if isinstance(stated, list) else [stated]
                record[caption] = [text for text in texts if isinstance(text, str) and text.strip()]
            # What is no text, or absent though `fields` names it, must not become ours.
            unknown = [
                f"unknown-{term.replace('_', '-')}"
                for term in TERMS
                if not isinstance(given.get(names[term], ... if term in renamed else None), str | None)
            ]
            record["split"] = record["split"] or self.stage.split
            problem = read.reason if isinstance(read, Skipped) else self._problem(record) or "".join(unknown[:1])
            yield place, record, problem or terms_named(*(record[term] for term in TERMS))

    def _problem(self, record: Mapping[str, Any]) -> str:
        """Why a record cannot be used; empty when it can."""
        images = record["image0"], record["image1"]
        usable = {
            "no-id": record["id"],
            "no-image": all(images),
            "unsafe-path": all(is_media_name(name, self._files.folder) for name in images),
            "unknown-split": re.fullmatch(SPLIT, record["split"]),
            "no-caption": record["caption0"] and record["caption1"],
        }
        return next((reason for reason, fits in usable.items() if not fits), "")
