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
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.plan import Ids
from twinset.contracts.references import Reference, checked_bibtex, reasons_beside
from twinset.contracts.source import Settings
from twinset.generators.annotation_files import (
    RECORD_REASONS,
    TERM_REASONS,
    Skipped,
    is_media_name,
    read_records,
    text_of,
)
from twinset.generators.named_pairs import NamedPairCandidate, NamedPairSource

CITATIONS = "citations.json"  # report: what records cite
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
        try:
            return [checked_bibtex(str(one)) for one in reports.get(CITATIONS, ())]
        except (TypeError, ValueError) as error:
            problem = f"_meta/{CITATIONS} of a stage of image-pairs: not a list of BibTeX ({error})"
            raise WrongUse(f"{problem}; remove it, and the card will do without") from error

    version = 4

    @cached_property
    def cited(self) -> dict[str, None]:
        """Works that records cite, as BibTeX."""
        return {}

    def report_files(self) -> Mapping[str, bytes]:
        return {CITATIONS: canonical_json(list(self.cited))}

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice; those of scattered groups, held in memory, come last.

        Raises `WrongUse` where the file cannot be read, or none of its records can be used.
        """
        self.cited.clear()
        ids, groups, last = Ids(), Ids(), ""
        for _, record, _ in self._records():
            ids.add(record["id"])
            if (group := record["group"]) and group != last:
                groups.add(group)
            last = group
        repeated, scattered = ids.suspects(), groups.suspects()
        apart, split_of = dict[str, list[NamedPairCandidate]](), dict[str, str]()
        for place, record, terms in self._records():
            name, group = record["id"], record["group"]
            if isinstance(terms, str):
                self.excluded.add(terms, place)
            elif first := repeated.place_before(name, place):
                self.excluded.add("repeated-id", f"{place} (id {name[:100]}, that of {first})")
            elif group and split_of.setdefault(group, record["split"]) != record["split"]:
                self.excluded.add("other-split", f"{place} (group {group[:100]})")
            elif group in scattered:
                apart.setdefault(group, []).append(self._planned(record, terms))
            else:
                yield self._planned(record, terms)
        for members in apart.values():
            yield from members

    def _planned(self, record: Mapping[str, Any], terms: Terms) -> NamedPairCandidate:
        if citation := checked_bibtex(record["citation"]):
            self.cited[citation] = None
        about = {name: record[name] for name in ("id", "image0", "image1")}
        return self.planned(
            identity=(record["id"],),
            images=(record["image0"], record["image1"]),
            captions=(record["caption0"], record["caption1"]),
            change=record["change"] or self.change,
            provenance={**about, **record["columns"], "citation": citation},
            group=record["group"] and sample_key(self.stage.name, "group", record["group"]),
            terms=terms,
            split=record["split"],
        )

    def _records(self) -> Iterator[tuple[str, Mapping[str, Any], Terms | str]]:
        """Place of each record, its fields by the names that `Fields` has, and its terms or why it is left out."""
        names, renamed = self.fields.model_dump(), self.fields.model_dump(exclude_defaults=True)
        needed = (*(name for key, name in names.items() if key in (*NEEDED, *renamed)), *self.columns)
        remedy = "correct source.fields or source.columns"
        for place, read in read_records(self.annotations, needed, tuple(names.values()), remedy):
            given = {} if isinstance(read, Skipped) else read
            record: dict[str, Any] = {key: text_of(given.get(name)) for key, name in names.items()}
            record["columns"] = {name: text_of(given.get(name)) for name in self.columns}
            for caption in ("caption0", "caption1"):
                said = given.get(names[caption])
                texts = said if isinstance(said, list) else [said]
                record[caption] = [text for text in texts if isinstance(text, str) and text.strip()]
            # What is no text, or absent though `fields` names it, must not become ours.
            unknown = [
                f"unknown-{term.replace('_', '-')}"
                for term in TERMS
                if not isinstance(given.get(names[term], ... if term in renamed else None), str | None)
            ]
            record["split"] = record["split"] or self.stage.split
            problem = read.reason if isinstance(read, Skipped) else self._problem(record) or "".join(unknown[:1])
            yield place, record, problem or Terms.named(*(record[term] for term in TERMS))

    def _problem(self, record: Mapping[str, Any]) -> str:
        """Why a record cannot be used; empty when it can."""
        images = record["image0"], record["image1"]
        usable = {
            "no-id": record["id"],
            "no-image": all(images),
            "unsafe-path": all(is_media_name(name, self._files.folder) for name in images),
            "unknown-split": re.fullmatch(SPLIT, record["split"]),
            "unknown-citation": _is_bibtex(record["citation"]),
            "no-caption": record["caption0"] and record["caption1"],
        }
        return next((reason for reason, fits in usable.items() if not fits), "")


def _is_bibtex(text: str) -> bool:
    try:
        checked_bibtex(text)
    except ValueError:
        return False
    return True
