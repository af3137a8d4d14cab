"""Candidates: what a plan is made of, and how they travel through Parquet."""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import pyarrow as pa

C = TypeVar("C", bound="Candidate")

SPLIT = r"^[a-z]{1,60}$"  # a split is a folder name: what comes from a file must match before it becomes a path

_ARROW = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    float | None: pa.float64(),
    tuple[str, ...]: pa.list_(pa.string()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One planned sample, without pixels.

    Subclasses add fields of type str, int, float, bool, tuple[str, ...] or float | None; a float is never NaN.

    key: ``SUBSET-`` + hash of the source identity (`contracts.canonical.sample_key`). identity: as `identity_of` gives
    it. group: what must not be split over shards or splits, such as a video. split: ``test`` for benchmarks.
    licence, credit, source_url: of all that the sample shows (`contracts.licences.terms.Terms`).
    """

    key: str
    group: str
    split: str = "test"
    identity: str = ""
    licence: str = ""
    credit: str = ""
    source_url: str = ""

    @property
    def media_names(self) -> tuple[str, ...]:
        """Names of the media that it needs, as its source's `media_files` takes them; none where it cannot say."""
        return ()

    @property
    def counted_as(self) -> str:
        """What a plan counts it as besides the total, such as ``replace_obj``; empty for nothing."""
        return ""

    @property
    def placed(self) -> dict[str, Any]:
        """The fields that its sample takes over."""
        return {"key": self.key, "group": self.group, "split": self.split}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionedCandidate(Candidate):
    """A planned pair with every caption that its two images may carry, best first; the sample's is the first."""

    captions0: tuple[str, ...]
    captions1: tuple[str, ...]

    @property
    def placed(self) -> dict[str, Any]:
        names = ("key", "group", "split", "captions0", "captions1")
        return {name: getattr(self, name) for name in names}


def arrow_schema(kind: type[Candidate]) -> pa.Schema:
    """Arrow schema of a type of candidates, one column a field."""
    hints = get_type_hints(kind)
    types = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    return pa.schema([pa.field(name, _ARROW[of], nullable=of == float | None) for name, of in types.items()])


def from_row(kind: type[C], row: dict[str, Any]) -> C:
    """The candidate that a row of a plan stands for."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return kind(**values)


def to_row(candidate: Candidate) -> dict[str, Any]:
    """Field values by name."""
    return {f.name: getattr(candidate, f.name) for f in dataclasses.fields(candidate)}
