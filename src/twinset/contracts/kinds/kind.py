"""What every kind of samples has: a descriptor, the sample in memory, its JSON, and its stored form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, JsonValue

from twinset.contracts.kinds.samples import Frame, Json, MediaFile
from twinset.contracts.licences.terms import Terms

SAMPLE_SCHEMA = 2  # version of the JSON in tars; a raise changes the bytes of every tar
JsonByRole = Mapping[str, Mapping[str, Any]]


class ImageRecord(BaseModel):
    """sha256 of the encoded image; size: (width, height) in pixels; pts: seconds, -1.0 where a picture has none."""

    sha256: str
    size: tuple[int, int]
    pts: float


class SourcesRecord(BaseModel):
    """Where images come from, by role. dataset: kind of the source, such as ``genecis-triplets``."""

    dataset: str
    files: dict[str, MediaFile]


class Record(BaseModel):
    """What the JSON of every kind has. licence, credit, source_url: its terms; JSON of schema 1 has the first alone."""

    schema_version: int
    kind: str
    split: str
    group: str
    scores: dict[str, float]
    provenance: dict[str, JsonValue]
    licence: str
    credit: str = ""
    source_url: str = ""

    @property
    def terms(self) -> Terms:
        """Its licence, credit and URL."""
        return Terms(self.licence, self.credit, self.source_url)


@dataclass(frozen=True, slots=True)
class SampleKind:
    """What every sample of a kind has.

    name: as in a source's ``makes``. record: model of the JSON. images: roles of its pictures, fields ``ROLE.jpg`` of
    the tar, in order; a stored sample can lack the last ones, those in ``optional``. texts: fields ``ROLE.txt``, and
    columns of rows. columns, numbers: words and scores that stand in rows too, scores null where a sample has none.
    bare_fields: its one image and its one text are the fields ``jpg`` and ``txt``, as other tools have them.
    """

    name: str
    record: type[Record]
    images: tuple[str, ...]
    texts: tuple[str, ...]
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    bare_fields: bool = False

    def image_field(self, role: str, extension: str) -> str:
        """The field of a tar that holds an image."""
        return extension if self.bare_fields else f"{role}.{extension}"

    def text_field(self, name: str) -> str:
        """The field of a tar that holds a text."""
        return "txt" if self.bare_fields else f"{name}.txt"

    @property
    def described(self) -> tuple[str, ...]:
        """Columns of words of a row, in order."""
        return (*self.texts, *self.columns)

    @property
    def hashed(self) -> tuple[str, ...]:
        """Columns of a row that hold the sha256 of the encoded images, in order."""
        return tuple(f"{role}_sha256" for role in self.images)

    def with_numbers(self, further: Sequence[str]) -> Self:
        """The same with further numbers in its rows."""
        return replace(self, numbers=(*self.numbers, *further))


def plural(kinds: Sequence[SampleKind]) -> str:
    """Kinds for messages: ``pairs``, or ``pairs or text-pairs``."""
    return " or ".join(f"{kind.name}s" for kind in kinds)


@dataclass(slots=True, kw_only=True)
class Sample:
    """One sample in memory. A kind adds an attribute for each image, each column, and each field of its record.

    provenance: the same keys with the same JSON types for every sample of a source. sources: files besides the
    frames' own that pixels came from.
    """

    kind: ClassVar[SampleKind]

    key: str
    group: str
    split: str
    provenance: Mapping[str, Json]
    scores: dict[str, float] = field(default_factory=dict)
    sources: tuple[MediaFile, ...] = ()

    def pictures(self) -> dict[str, Frame]:
        """Images by role, in the order of the tar; empty where the sample is a row of an index alone."""
        frames = {role: getattr(self, role) for role in self.kind.images}
        return {role: frame for role, frame in frames.items() if frame is not None}

    def described(self) -> dict[str, str]:
        """The words of a row, by column."""
        return {name: getattr(self, name) for name in self.kind.described}

    def copied(self) -> Any:
        """The sample as it lies in an earlier stage, with its ``fields`` and ``images``; None where it is made here."""
        return None

    def recorded(self, dataset: str, files: JsonByRole, images: JsonByRole) -> dict[str, Any]:
        """What the JSON of this kind has besides `Record`'s fields.

        dataset: kind of the source. files, images: the JSON of each image's source and of the image (`ImageRecord`).
        """
        given = {"source": {"dataset": dataset, "files": files}, "images": images, **images}
        fields = [name for name in self.kind.record.model_fields if name not in Record.model_fields]
        return {name: given[name] if name in given else getattr(self, name) for name in fields}

    def question(self, images: Mapping[str, str]) -> Any:
        """JSON that is equal for two samples that ask the same question: by default its kind, texts and images.

        images: sha256 by role; empty for a sample without images.
        """
        words = self.described()
        return [self.kind.name, {name: words[name] for name in self.kind.texts}, dict(images)]


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Stored(Generic[R]):
    """One sample as it lies in a tar.

    images: encoded, by role; extension: of all, ``jpg``, ``png`` or ``webp``. texts: by name, such as ``caption0``.
    fields: all of the tar, in its order.
    """

    kind: SampleKind
    key: str
    images: Mapping[str, bytes]
    extension: str
    texts: Mapping[str, str]
    json: R
    fields: Mapping[str, bytes]
