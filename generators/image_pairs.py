"""Pairs of two images that annotations name, also your own: listed in one file, with two captions each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import pyarrow as pa

from twinset.generators.annotation_files import (
    LINE_REASONS,
    Skipped,
    is_media_name,
    parquet_rows,
    read_json,
    read_json_lines,
    refuse_unusable,
    text_of,
)
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, ImageFolderSource, UnusableImage
from twinset.manifests.candidate import Candidate, CaptionedCandidate
from twinset.manifests.canonical import canonical_json, sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.manifests.references import reasons_beside
from twinset.manifests.repeated_ids import Ids
from twinset.manifests.source import Reference, Settings
from twinset.shards.contracts import Generator
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Frame, Json, Rejected


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


S = TypeVar("S", bound=NamedPairSource)


class NamedPairGenerator(Generator[S]):
    """Makes pairs of two named images; a subclass has a ``version`` and plans."""

    candidate = NamedPairCandidate
    libraries = ("numpy", "pillow")

    def inputs(self) -> str:
        return sha256_of_file(self.source.annotations)[0]

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their images, or why one has none; images that pairs of one call share are read once."""
        planned = cast(Sequence[NamedPairCandidate], candidates)
        read = self._files.read(name for one in planned for name in (one.image0, one.image1))
        for one in planned:
            yield paired(one, read)

    @cached_property
    def _files(self) -> ImageFiles:
        return ImageFiles(self.source.media, upright=True)

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
        for number, texts in enumerate(captions):
            if not texts or not all(map(str.strip, texts)):
                raise WrongUse(
                    f"{self.source.annotations}: caption {number} of {list(identity)} is absent or blank; leave such "
                    "records out with self.excluded.add(reason, place)"
                )
        return NamedPairCandidate(
            **self.identified(*identity, group=group),
            captions0=tuple(captions[0]),
            captions1=tuple(captions[1]),
            image0=images[0],
            image1=images[1],
            change=change,
            provenance=canonical_json(provenance or {}).decode(),
        )


Record = Mapping[str, Any] | Skipped
RECORD_REASONS = {**LINE_REASONS, **reasons_beside(__file__, "records")}


def read_records(path: Path, fields: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Place and fields of each record, in order; a record that is not one gives a `Skipped`.

    Args:
        path: ``.json`` with a list of objects, which is held whole; ``.jsonl`` or ``.ndjson``, also with ``.gz``;
            ``.parquet``. The last two are streamed.
        fields: that are asked for. Other columns of Parquet are not read.

    Raises:
        WrongUse: the file is of another kind, cannot be read, or lacks a column.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    records: Iterable[tuple[int, Any]]
    if suffix == ".parquet":
        records, noun = enumerate(_rows(path, fields), 1), "row"
    elif suffix == ".json":
        whole = read_json(path)
        if not isinstance(whole, list):
            raise WrongUse(f"{path}: not a JSON list of objects; write one, or JSON lines, or Parquet")
        records, noun = enumerate(whole, 1), "record"
    elif suffix in (".jsonl", ".ndjson"):
        records, noun = read_json_lines(path), "line"
    else:
        raise WrongUse(f"{path}: annotations are .json, .jsonl or .parquet, not {suffix or 'without a suffix'}")
    for number, value in records:
        place = f"{path.name} {noun} {number}"
        yield place, value if isinstance(value, dict | Skipped) else Skipped(place, "not-an-object")


def _rows(path: Path, fields: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    def columns(schema: pa.Schema) -> tuple[str, ...]:
        if missing := [name for name in fields if name not in schema.names]:
            there = ", ".join(schema.names)[:200]
            raise WrongUse(f"{path}: no column {missing[0]!r} (it has {there}); name it with source.fields")
        return fields

    return parquet_rows(path, columns)


class Fields(Settings):
    """What the fields of a record are called.

    id: of its id. image0, image1: of the two images. caption0, caption1: of their captions.
    """

    id: str = "id"
    image0: str = "image0"
    image1: str = "image1"
    caption0: str = "caption0"
    caption1: str = "caption1"


class ImagePairs(NamedPairSource):
    """Pairs on disk.

    annotations: a JSON list of objects, JSON lines or Parquet. An image is a path below ``media``, or a name that is
    found there (`shards.media.media_folder.ImageFolder.find`). A caption is text, or a list of texts, best first.
    media: folder of the images, of folders of them, or of tars. fields: what the fields are called.
    """

    kind: Literal["image-pairs"]
    fields: Fields = Fields()

    generator = "twinset.generators.image_pairs:ImagePairGenerator"
    reference = Reference("a list of image pairs")
    reasons: ClassVar[Mapping[str, str]] = {
        **NamedPairSource.reasons,
        **RECORD_REASONS,
        **reasons_beside(__file__, "image-pairs"),
    }


class ImagePairGenerator(NamedPairGenerator[ImagePairs]):
    """Plans a pair a record."""

    version = 1

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice: memory grows by 8 bytes a record."""
        suspects, usable = Ids(self._text(record, "id") for _, record in self._records()).suspects(), False
        for place, record in self._records():
            if problem := self._problem(record):
                self.excluded.add(problem, place)
            elif suspects.place_before(name := self._text(record, "id"), place):
                self.excluded.add("repeated-id", f"{place} (id {name[:100]})")
            else:
                usable = True
                images = self._text(record, "image0"), self._text(record, "image1")
                captions = self._captions(record, "caption0"), self._captions(record, "caption1")
                about = {"id": name, "image0": images[0], "image1": images[1]}
                yield self.planned((name,), images, captions, provenance=about)
        if not usable:
            refuse_unusable(self.source.annotations, self.excluded, "records need an id, two images and two captions")

    def _records(self) -> Iterator[tuple[str, Record]]:
        return read_records(self.source.annotations, tuple(self.source.fields.model_dump().values()))

    def _problem(self, record: Record) -> str:
        """Why a record cannot be used; empty when it can."""
        if isinstance(record, Skipped):
            return record.reason
        if not self._text(record, "id"):
            return "no-id"
        images = [self._text(record, "image0"), self._text(record, "image1")]
        if not all(images):
            return "no-image"
        if not all(map(is_media_name, images)):
            return "unsafe-path"
        return "" if self._captions(record, "caption0") and self._captions(record, "caption1") else "no-caption"

    def _text(self, record: Record, field: str) -> str:
        return "" if isinstance(record, Skipped) else text_of(record.get(getattr(self.source.fields, field)))

    def _captions(self, record: Record, field: str) -> list[str]:
        value = None if isinstance(record, Skipped) else record.get(getattr(self.source.fields, field))
        return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
