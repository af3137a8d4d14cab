"""Pairs of an earlier stage that are copied: what is planned of one, and the check that it is still the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.kind import Sample, SampleKind, Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.contracts.kinds.samples import Frame, MediaFile
from twinset.contracts.licences.terms import TERMS
from twinset.shards.finished_stage import FinishedStage

IMAGES = ("image0", "image1")
HASHED = tuple(f"{role}_sha256" for role in IMAGES)
PAIR_COLUMNS = ("key", "identity", "tar", "split", "group", "caption0", "caption1")
COPIED = (*PAIR_COLUMNS, *HASHED, *TERMS, "sources")  # columns that `planned` reads


@dataclass(slots=True, kw_only=True)
class CopiedPair(Sample):
    """A pair that is copied from an earlier stage, byte by byte.

    fields: of its tar, in their order. images: sha256 by role.
    """

    kind: ClassVar[SampleKind] = PAIR

    caption0: str
    caption1: str
    fields: Mapping[str, bytes]
    images: Mapping[str, str]

    def pictures(self) -> dict[str, Frame]:
        return {}

    def copied(self) -> Self:
        return self

    def question(self, images: Mapping[str, str]) -> Any:
        """As that of a `twinset.Pair`."""
        return sorted(zip(images.values(), (self.caption0, self.caption1), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedPairCandidate(CaptionedCandidate):
    """A pair of an earlier stage, and the tar that holds it there; JSON of each media file that it came from."""

    tar: str
    image_sha256s: tuple[str, ...]
    sources: tuple[str, ...]


def planned(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a candidate, with the pair's own key. row: `COPIED` columns of the index."""
    return {
        **{name: row[name] for name in ("key", "identity", "tar", "split", "group", *TERMS)},
        "captions0": (row["caption0"],),
        "captions1": (row["caption1"],),
        "image_sha256s": tuple(row[name] for name in HASHED),
        "sources": tuple(canonical_json(source).decode() for source in row["sources"]),
    }


def copied(pairs: FinishedStage, candidate: CopiedPairCandidate, stored: Stored[PairRecord]) -> CopiedPair:
    """The sample, under the candidate's key. Raises `BrokenTar`: its images are not those that were planned from."""
    sha256s = dict(zip(IMAGES, candidate.image_sha256s, strict=True))
    pairs.check_images(candidate.tar, stored, sha256s)
    return CopiedPair(
        key=candidate.key,
        group=candidate.group,
        split=candidate.split,
        provenance=stored.json.provenance,
        scores=dict(stored.json.scores),
        sources=tuple(MediaFile(**json.loads(file)) for file in candidate.sources),
        caption0=stored.texts["caption0"],
        caption1=stored.texts["caption1"],
        fields=stored.fields,
        images=sha256s,
    )


def category_of(record: PairRecord) -> str:
    """What differs: such as ``replace_obj`` where its provenance says so, as BiVLC's does, else the change."""
    kind, subtype = record.provenance.get("type"), record.provenance.get("subtype")
    return f"{kind}_{subtype}" if kind and subtype else record.change


def twins(pairs: FinishedStage) -> dict[str, str]:
    """By key of each pair with the images and captions of another one: the key of the one that stays, of the smallest
    identity, as where the engine drops duplicates."""
    rows = pairs.read(["content", "identity", "key"]).to_pylist()
    first: dict[str, str] = {}
    ordered = sorted((row["content"], row["identity"], row["key"]) for row in rows)
    return {key: first[content] for content, _, key in ordered if first.setdefault(content, key) != key}
