"""Pairs of your own images: listed in one file, with two captions each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from twinset.contracts.candidate import SPLIT
from twinset.contracts.canonical import canonical_json, sample_key
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.plan import Ids
from twinset.contracts.references import Reference, checked_bibtex, reasons_beside
from twinset.contracts.source import Settings
from twinset.generators.annotation_files import (
    RECORD_REASONS,
    TERM_REASONS,
    Record,
    Skipped,
    is_media_name,
    read_records,
    text_of,
)
from twinset.generators.named_pairs import NamedPairCandidate, NamedPairSource

CITATIONS, CITED = "citations.json", 100  # report: what records cite, and one more than a card shows where there are
NEEDED = ("id", "image0", "image1", "caption0", "caption1")


class Fields(Settings):
    """What the fields of a record are called. All but the first five may be absent.

    id: of its id. image0, image1: of the two images. caption0, caption1: of their captions. change: what differs, or a
    category. group: of pairs that are never split over splits or shards. split: its split, the subset's where empty.
    licence, credit, source_url: of its images, those of the source where empty. citation: BibTeX.
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
    citation: str = "citation"


class ImagePairs(NamedPairSource):
    """Pairs on disk.

    annotations: CSV or TSV with names of columns, a JSON list of objects, JSON lines or Parquet. An image is a path
    below ``media``, or a name that is found there (`shards.media.media_folder.ImageFolder.find`). A caption is text, or
    a list of texts, best first.
    media: folder of the images, of folders of them, or of tars. fields: what the fields are called. columns: further
    fields of text, which go into the provenance of each sample. change: what differs, where a record does not say it.
    citation: BibTeX of the data set.
    """

    kind: Literal["image-pairs"]
    fields: Fields = Fields()
    columns: tuple[str, ...] = ()
    change: str = ""
    citation: Annotated[str, AfterValidator(checked_bibtex)] = ""

    reports = (CITATIONS,)
    reference = Reference("a list of image pairs")
    reasons: ClassVar[Mapping[str, str]] = {
        **NamedPairSource.reasons,
        **RECORD_REASONS,
        **TERM_REASONS,
        **reasons_beside(__file__, "image-pairs"),
    }

    @property
    def made_from(self) -> Reference:
        return replace(self.reference, bibtex=self.citation)

    def cites(self, reports: Mapping[str, Any]) -> Sequence[str]:
        return [checked_bibtex(str(one)) for one in reports.get(CITATIONS, ())][:CITED]

    def how_made(self, reports: Mapping[str, Any]) -> str:
        if len(reports.get(CITATIONS, ())) <= CITED:
            return ""
        return f"Records cite more works than the first {CITED} below: see `citation` in each sample's `provenance`."

    version = 4

    @cached_property
    def cited(self) -> dict[str, None]:
        """Works that records cite, as BibTeX."""
        return {}

    def report_files(self) -> Mapping[str, bytes]:
        return {CITATIONS: canonical_json(list(self.cited))}

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice; those of scattered groups, held in memory, come last."""
        self.cited.clear()
        ids, groups, last = Ids(), Ids(), ""
        for _, record in self._records():
            ids.add(self._text(record, "id"))
            if (group := self._text(record, "group")) and group != last:
                groups.add(group)
            last = group
        repeated, scattered = ids.suspects(), groups.suspects()
        apart, split_of = dict[str, list[NamedPairCandidate]](), dict[str, str]()
        for place, record in self._records():
            name, group = self._text(record, "id"), self._text(record, "group")
            split = self._text(record, "split") or self.stage.split
            if problem := self._problem(record):
                self.excluded.add(problem, place)
            elif isinstance(terms := self._terms(record), str):
                self.excluded.add(terms, place)
            elif first := repeated.place_before(name, place):
                self.excluded.add("repeated-id", f"{place} (id {name[:100]}, that of {first})")
            elif group and split_of.setdefault(group, split) != split:
                self.excluded.add("other-split", f"{place} (group {group[:100]})")
            elif group in scattered:
                apart.setdefault(group, []).append(self._planned(record, terms, name, group, split))
            else:
                yield self._planned(record, terms, name, group, split)
        for members in apart.values():
            yield from members

    def _planned(self, record: Record, terms: Terms, name: str, group: str, split: str) -> NamedPairCandidate:
        images = self._text(record, "image0"), self._text(record, "image1")
        captions = self._captions(record, "caption0"), self._captions(record, "caption1")
        about = {"id": name, "image0": images[0], "image1": images[1]}
        about |= {column: self._value(record, column) for column in self.columns}
        about |= {"citation": checked_bibtex(self._text(record, "citation"))}
        if about["citation"] and len(self.cited) <= CITED:
            self.cited[about["citation"]] = None
        change = self._text(record, "change") or self.change
        return self.planned(
            (name,),
            images,
            captions,
            change,
            about,
            group and sample_key(self.stage.name, "group", group),
            terms,
            split,
        )

    def _records(self) -> Iterator[tuple[str, Record]]:
        names = self.fields.model_dump()
        renamed = self.fields.model_dump(exclude_defaults=True)
        needed = (*(name for key, name in names.items() if key in (*NEEDED, *renamed)), *self.columns)
        return read_records(self.annotations, needed, tuple(names.values()))

    def _problem(self, record: Record) -> str:
        """Why a record cannot be used; empty when it can."""
        if isinstance(record, Skipped):
            return record.reason
        if not self._text(record, "id"):
            return "no-id"
        images = [self._text(record, "image0"), self._text(record, "image1")]
        if not all(images):
            return "no-image"
        if not all(is_media_name(name, self._files.folder) for name in images):
            return "unsafe-path"
        if not re.fullmatch(SPLIT, self._text(record, "split") or self.stage.split):
            return "unknown-split"
        try:
            checked_bibtex(self._text(record, "citation"))
        except ValueError:
            return "unknown-citation"
        return "" if self._captions(record, "caption0") and self._captions(record, "caption1") else "no-caption"

    def _terms(self, record: Record) -> Terms | str:
        """Its terms, or the reason to leave it out: what is not text, or lacks a named field, must not become ours."""
        renamed = self.fields.model_dump(exclude_defaults=True)
        given = {} if isinstance(record, Skipped) else record
        for term in TERMS if given else ():
            column = getattr(self.fields, term)
            value = given.get(column)
            if (value is not None and not isinstance(value, str)) or (term in renamed and column not in given):
                return f"unknown-{term.replace('_', '-')}"
        return Terms.named(*(self._text(record, term) for term in TERMS))

    def _text(self, record: Record, field: str) -> str:
        return self._value(record, getattr(self.fields, field))

    @staticmethod
    def _value(record: Record, column: str) -> str:
        return "" if isinstance(record, Skipped) else text_of(record.get(column))

    def _captions(self, record: Record, field: str) -> list[str]:
        value = None if isinstance(record, Skipped) else record.get(getattr(self.fields, field))
        return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
