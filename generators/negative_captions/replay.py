"""Negative captions as they were released, a table for later stages: SugarCrepe's JSON, tables, TROHN's Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.references import Reference
from twinset.generators.annotation_files import (
    RECORD_REASONS,
    TERM_REASONS,
    Record,
    SeveralFiles,
    Skipped,
    checked,
    read_json,
    read_records,
    text_of,
)
from twinset.generators.captions.tables import CREDIT, LICENCE, LONGEST_CAPTION, SOURCE_URL, stated_terms
from twinset.generators.negative_captions.changes import unchanged
from twinset.generators.negative_captions.kinds import COLUMNS, KINDS, NegativeCaption
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.shards.contracts import Source

_IMAGE = ("filename", "image_id", "image", "file_name")
_TEXTS = ("caption", "negative_caption", "type", "subtype")
_COLUMNS = (*_IMAGE, *_TEXTS, *LICENCE, *CREDIT, *SOURCE_URL)
_FORMS = "name a folder of SugarCrepe's JSON files (replace_obj.json, …) or of Parquet files, or files of these or CSV"


class ReplayedNegatives(Source):
    """Negative captions of released files.

    captions: folders or files, read in this order (`generators.negative_captions.replay`). licence: of the captions.

    The id of a record is its file's stem and the key of a JSON object, or the number of the record (from 1).
    """

    kind: Literal["replayed-negatives"]
    captions: SeveralFiles
    licence: str = ""

    makes = "table"
    paper = BIVLC
    reference = Reference("negative captions")  # of any data set: ``cites`` of the recipe says which
    group = "caption"
    verb = "copied from"
    card_template = Path(__file__).with_name("replay.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**RECORD_REASONS, **TERM_REASONS, **reasons_beside(__file__, "released")}

    version = 3
    candidate = NegativeCaption
    row_schema = COLUMNS

    def inputs(self) -> str:
        """Digest of the files, with their names, which ids begin with."""
        return digest([[path.name, *sha256_of_file(path)] for path in self._files])

    def plan(self) -> Iterator[NegativeCaption]:
        """Records in the order of the files. Raises `WrongUse` for a file of which nothing can be used."""
        for path in self._files:
            usable, first, stem = False, "", Path(path.name.removesuffix(".gz")).stem
            for record, place, fields in _records(path):
                read = self._read(stem, record, fields)
                if isinstance(read, str):
                    self.excluded.add(read, place)
                    first = first or f" ({place}: {read})"
                else:
                    usable = True
                    yield read
            if not usable:
                raise WrongUse(f"{path}: no negative caption in it can be used{first}; {_FORMS}")

    def _read(self, stem: str, number: str, fields: Record) -> NegativeCaption | str:
        """The negative caption of a record, or why it has none; its kind is that of the record, or of its file."""
        if isinstance(fields, Skipped):
            return fields.reason
        caption, negative, type, subtype = (text_of(fields.get(name)) for name in _TEXTS)
        stated = "type" in fields or "subtype" in fields
        kind = f"{type}_{subtype}".lower() if stated else stem
        if stated and kind not in KINDS:
            return "unknown-kind"
        if not caption.strip() or not negative.strip():
            return "no-caption"
        if max(len(caption), len(negative)) > LONGEST_CAPTION:
            return "too-long"
        if unchanged(caption, negative):
            return "unchanged"
        if isinstance(terms := stated_terms(fields), str):
            return terms
        type, subtype = KINDS.get(kind, ("", ""))
        image = next((text for name in _IMAGE if (text := text_of(fields.get(name)))), "")
        return NegativeCaption(
            **self.identified(f"{stem}/{number}", terms=terms),
            caption_id=f"{stem}/{number}",
            image_id=image,
            image=image,
            caption=caption,
            negative_caption=negative,
            type=type,
            subtype=subtype,
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for candidate in cast(Sequence[NegativeCaption], candidates):
            yield TableRows(candidate.key, [{name: getattr(candidate, name) for name in COLUMNS.names}])

    @cached_property
    def _files(self) -> list[Path]:
        """The files, those of a folder in the order of the kinds or of their names.

        Raises `WrongUse`: a path holds none, or two files have one name, with which the ids of their records begin.
        """
        files: list[Path] = []
        for path in self.captions:
            of_kinds = [path / f"{kind}.json" for kind in KINDS]
            matches = [path] if path.is_file() else [*filter(Path.is_file, of_kinds)] or sorted(path.glob("*.parquet"))
            if not matches:
                raise WrongUse(f"{path}: holds no negative captions; {_FORMS}")
            files += matches
        names = [path.name for path in files]
        if repeated := next((name for name in names if names.count(name) > 1), ""):
            raise WrongUse(f"two files are called {repeated!r}, with which the ids of their records begin; rename one")
        return files


def _records(path: Path) -> Iterator[tuple[str, str, Record]]:
    """Key or number, place and fields of the records of a file. SugarCrepe has an object of records by number."""
    whole = read_json(path, leave_out=True) if path.name.lower().endswith((".json", ".json.gz")) else None
    if isinstance(whole, dict):
        for key, value in whole.items():
            place = f"{path.name} {key!a}"
            read = checked([key, value], place)
            fields = value if isinstance(value, dict) else Skipped(place, "not-an-object")
            yield key, place, read if isinstance(read, Skipped) else fields
    else:
        for number, (place, record) in enumerate(read_records(path, _TEXTS[:2], _COLUMNS, _FORMS), 1):
            yield str(number), place, record
