"""Your own pairs: two images and two captions each, listed in one file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.generators.annotation_files import (
    LINE_REASONS,
    Skipped,
    is_media_name,
    read_json,
    read_json_lines,
    refuse_unusable,
)
from twinset.generators.named_pairs import NamedPairCandidate, NamedPairGenerator, NamedPairSource
from twinset.manifests.errors import WrongUse
from twinset.manifests.repeated_ids import Ids
from twinset.manifests.source import Reference, Settings
from twinset.shards.contracts import LeftOut

Record = Mapping[str, Any] | Skipped
RECORD_REASONS = {**LINE_REASONS, "not-an-object": "records that are not objects with named fields"}


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
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            missing = [name for name in fields if name not in file.schema_arrow.names]
            if missing:
                there = ", ".join(file.schema_arrow.names)[:200]
                raise WrongUse(f"{path}: no column {missing[0]!r} (it has {there}); name it with source.fields")
            for batch in file.iter_batches(columns=list(fields), use_threads=False):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise WrongUse(f"{path}: not a Parquet file that can be read ({error}); fetch or write it again") from error


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
        "no-id": "records without an id, which is text or a whole number",
        "repeated-id": "records with an id that came before; the first counts",
        "no-image": "records that do not name two images",
        "no-caption": "records without a caption of each image",
    }


class ImagePairGenerator(NamedPairGenerator[ImagePairs]):
    """Plans a pair a record."""

    version = 1

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice: memory grows by 8 bytes a record."""
        self.excluded = LeftOut()
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
        value = None if isinstance(record, Skipped) else record.get(getattr(self.source.fields, field))
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def _captions(self, record: Record, field: str) -> list[str]:
        value = None if isinstance(record, Skipped) else record.get(getattr(self.source.fields, field))
        return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
