"""What a shard holds: samples as the members of a tar, and the verdict on every candidate, one row each.

A sample is encoded images, caption files and one JSON with every key always there. A row says what was kept, what was
rejected, by whom and why. What filters say is checked: one verdict each, declared reasons, finite numbers.
"""

from __future__ import annotations

import contextlib
import math
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from pydantic_core import from_json

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import SAMPLE_SCHEMA, Sample, SampleKind, Stored
from twinset.contracts.kinds.samples import (
    EXTENSIONS,
    Drop,
    EncodedImage,
    Keep,
    MediaFile,
    Rejected,
    Score,
    TableRows,
    Verdict,
)
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.parts import FILTERS, Filter
from twinset.shards.plan import read_parquet
from twinset.shards.storage.tar_reader import REMEDY, BrokenTar

if TYPE_CHECKING:
    import webdataset


KEPT, REJECTED = "kept", "rejected"
DUPLICATE = "duplicate"

_SOURCE = pa.struct([("path", pa.string()), ("size", pa.int64()), ("sha256", pa.string())])
#: Columns of every row, of samples and of tables.
JUDGED = pa.schema(
    [
        ("key", pa.string()),
        ("identity", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("verdict", pa.string()),
        ("filter", pa.string()),
        ("reason", pa.string()),
        ("score", pa.float64()),
        ("detail", pa.string()),
        *((name, pa.string()) for name in TERMS),
    ]
)
_LAST = pa.schema([("content", pa.string()), ("sources", pa.list_(_SOURCE))])


class TarWriter(contextlib.AbstractContextManager["TarWriter"]):
    """Writes members in the order given with `webdataset.TarWriter`; owner, mode and time are fixed (USTAR headers).

    Nothing is created before the first member, so that a shard that keeps nothing leaves no empty tar (webdataset
    raises on those); after an error it is removed. Use as a context manager; afterwards `sha256` and `size` describe
    the file, or are ``""`` and 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.size = 0
        self._file: BinaryIO | None = None
        self._tar: webdataset.TarWriter | None = None

    def add(self, name: str, content: bytes) -> None:
        """Append one member, ``KEY.FIELD``; ``name`` has at most 100 ASCII characters, else ValueError."""
        if len(name) > tarfile.LENGTH_NAME or not name.isascii():
            raise ValueError(f"{name}: names of members have at most {tarfile.LENGTH_NAME} ASCII characters")
        if self._tar is None:
            import webdataset  # imports torch, where it is installed

            self._file = self.path.open("xb")
            self._tar = webdataset.TarWriter(self._file, encoder=False, mtime=0, user="", group="", mode=0o644)
        key, _, field = name.partition(".")
        # A member at a time: of a whole sample webdataset would sort the fields by name.
        self._tar.write({"__key__": key, field: content})

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for name, content in fields:
            self.add(f"{key}.{name}", content)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is None or self._tar is None:
            return
        if kind is not None:  # the error in hand says more than what closing may raise
            for opened in (self._tar, self._file):
                with contextlib.suppress(OSError):
                    opened.close()
            self.path.unlink(missing_ok=True)
            return
        with self._file:
            self._tar.close()  # the two blocks of zeros that end a tar
        self.sha256, self.size = sha256_of_file(self.path)


def fields_of(
    sample: Sample, images: Mapping[str, EncodedImage], dataset: str, terms: Terms, extension: str
) -> list[tuple[str, bytes]]:
    """The tar fields of a sample, in the order that they are written. dataset: kind of the source."""
    sources = {role: asdict(image.source) for role, image in images.items()}
    pictures = {role: {"sha256": img.sha256, "size": list(img.size), "pts": img.pts} for role, img in images.items()}
    described = {
        "schema_version": SAMPLE_SCHEMA,
        "kind": sample.kind.name,
        "split": sample.split,
        "group": sample.group,
        **sample.recorded(dataset, sources, pictures),
        "scores": sample.scores,
        "provenance": dict(sample.provenance),
        **terms._asdict(),
    }
    words = sample.described()
    return [
        *((sample.kind.image_field(role, extension), image.content) for role, image in images.items()),
        *((sample.kind.text_field(name), words[name].encode("utf-8")) for name in sample.kind.texts),
        ("json", canonical_json(described)),
    ]


def content_digest(sample: Sample, images: Mapping[str, str]) -> str:
    """The same for two samples that ask the same question. images: sha256 by role."""
    return digest(sample.question(images))


def stored(key: str, fields: Mapping[str, bytes], where: str) -> Stored[Any]:
    """The sample that the fields of a tar make, of the kind that its JSON names; `BrokenTar` when they make none."""
    try:
        described = from_json(fields["json"])
        kind = KINDS[described["kind"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenTar(f"{where}: {key} has {sorted(fields)}, and no json of a sample; {REMEDY}") from error
    extension = next((ext for ext in EXTENSIONS if kind.image_field(kind.images[0], ext) in fields), EXTENSIONS[0])
    _check_fields(key, kind, fields, extension, where)
    try:
        return Stored(
            kind,
            key,
            {role: fields[name] for role in kind.images if (name := kind.image_field(role, extension)) in fields},
            extension,
            {name: fields[kind.text_field(name)].decode("utf-8") for name in kind.texts},
            kind.record.model_validate(described),
            fields,
        )
    except UnicodeDecodeError as error:
        raise BrokenTar(f"{where}: a caption of {key} is not UTF-8 ({error}); {REMEDY}") from error
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise BrokenTar(f"{where}: {key}.json: {problem}; {REMEDY}") from error


def _check_fields(key: str, kind: SampleKind, fields: Mapping[str, bytes], extension: str, where: str) -> None:
    """Refuse fields that are too few or too many: optional images are absent from some on."""
    there = tuple(role for role in kind.images if kind.image_field(role, extension) in fields)
    needed = {role for role in kind.images if role not in kind.optional}
    wanted = {kind.image_field(role, extension) for role in needed | {*there}}
    wanted |= {kind.text_field(name) for name in kind.texts} | {"json"}
    if set(fields) != wanted or there != kind.images[: len(there)]:
        raise BrokenTar(f"{where}: {key} has {sorted(fields)} instead of {sorted(wanted)}; {REMEDY}")


@dataclass(slots=True, kw_only=True)
class Row:
    """Verdict on one candidate for a sample.

    identity: of the candidate, what its key was made from. filter: kind of the filter that rejected it; ``generator``
    when it could not be made; empty when kept. reason: why it was rejected.
    words: by column (`SampleKind.described`). numbers: scores by column. images: sha256 of the encoded ones, by role.
    content: digest of images and words; two samples of one content are duplicates. Empty when nothing was made.
    licence, credit, source_url: as of `contracts.candidate.Candidate`.
    """

    kind: SampleKind
    key: str
    identity: str = ""
    group: str
    split: str
    verdict: str
    filter: str = ""
    reason: str = ""
    score: float | None = None
    detail: str = ""
    licence: str = ""
    credit: str = ""
    source_url: str = ""
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    content: str = ""
    sources: tuple[MediaFile, ...] = ()

    @property
    def terms(self) -> Terms:
        """Its licence, credit and URL."""
        return Terms(self.licence, self.credit, self.source_url)


def schema_of(kind: SampleKind) -> pa.Schema:
    """Columns of the rows of a kind of samples."""
    own = pa.schema([(name, pa.string()) for name in (*kind.described, *kind.hashed)])
    numbers = pa.schema([(name, pa.float64()) for name in kind.numbers])
    return pa.schema([*JUDGED, *own, *numbers, *_LAST])


def table_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the rows of a table. columns: the generator's own, which are null where a candidate was rejected.

    Raises ValueError when the generator has a column of a name that every row has.
    """
    if taken := sorted({*columns.names} & {*JUDGED.names}):
        raise ValueError(f"a table has a column {taken[0]!r} of its own; rename the generator's")
    return pa.schema([*JUDGED, *(pa.field(column.name, column.type) for column in columns)])


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write the rows of a shard, at least one, as Parquet with bytes that depend on the rows alone."""
    kind = rows[0].kind
    records = [
        {
            **{name: getattr(row, name) for name in (*JUDGED.names, "content")},
            **{name: row.words.get(name, "") for name in kind.described},
            **{name: row.numbers.get(name) for name in kind.numbers},
            **{f"{role}_sha256": row.images.get(role, "") for role in kind.images},
            "sources": [asdict(source) for source in row.sources],
        }
        for row in rows
    ]
    _write(records, schema_of(kind), path)


def write_table_rows(results: Iterable[tuple[Candidate, TableRows | Rejected]], columns: pa.Schema, path: Path) -> None:
    """Write the rows of a table's shard as Parquet with bytes that depend on the rows alone.

    Args:
        results: candidates in plan order with what was made of them: several rows each, or one that says why not.
        columns: the generator's own.

    Raises:
        ValueError: a generator gave no rows for a candidate that it did not reject.
        pyarrow.ArrowException: a value does not fit its column.
    """
    rows: list[Mapping[str, Any]] = []
    for candidate, made in results:
        judged = {name: getattr(candidate, name) for name in ("key", "identity", "group", "split", *TERMS)}
        judged |= {"verdict": KEPT, "filter": "", "reason": "", "score": None, "detail": ""}
        if isinstance(made, Rejected):
            rejected = {"verdict": REJECTED, "filter": "generator", "reason": made.reason, "detail": made.detail}
            rows.append(judged | rejected)
        elif made.rows:
            rows += [{**row, **judged} for row in made.rows]
        else:
            raise ValueError(f"{candidate.key}: a candidate of a table gave no row; its generator must reject it")
    _write(rows, table_schema(columns), path)


def _write(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, path: Path) -> None:
    """Write rows as Parquet without statistics, whose bytes depend on the library that computes them."""
    table = pa.Table.from_pylist(rows, schema)
    # A file that pyarrow opens by its name stays open for as long as the error of a full disk lives.
    with path.open("wb") as stream:
        pq.write_table(table, stream, compression="zstd", store_schema=False, write_statistics=False)


def read_rows(stream: BinaryIO, where: str = "rows of a shard") -> list[Row]:
    """Rows of one shard, in plan order; `BuildFailed`, with ``where``, when they are of no kind of samples."""
    try:
        return _rows(read_parquet(stream))
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:  # and so those of pyarrow
        raise BuildFailed(f"{where}: damaged ({error}); run the same build again") from error


def _rows(table: pa.Table) -> list[Row]:
    kind = _kind_of(table.schema)
    if absent := [name for name in {*table.column_names} - {"score", *kind.numbers} if table[name].null_count]:
        raise ValueError(f"the column {min(absent)} lacks values")
    return [
        Row(
            kind=kind,
            **{name: values[name] for name in (*JUDGED.names, "content")},
            words={name: values[name] for name in kind.described},
            numbers={name: values[name] for name in kind.numbers if values[name] is not None},
            images={role: values[f"{role}_sha256"] for role in kind.images if values[f"{role}_sha256"]},
            sources=tuple(MediaFile(**source) for source in values["sources"]),
        )
        for values in table.to_pylist()
    ]


def _kind_of(schema: pa.Schema) -> SampleKind:
    """The kind of samples that rows are of, with the numbers that these have."""
    doubles = [column.name for column in schema if column.type == pa.float64()]
    for kind in KINDS.values():
        known = kind.with_numbers([name for name in doubles if name not in (*JUDGED.names, *kind.numbers)])
        if schema.names == (own := schema_of(known)).names:
            if wrong := [name for name in schema.names if schema.field(name).type != own.field(name).type]:
                raise ValueError(f"the column {wrong[0]} is of {schema.field(wrong[0]).type}")
            return known
    raise ValueError(f"columns {', '.join(schema.names)} are of no kind of samples")


class BadVerdict(BuildFailed):
    """A filter does not keep the contract of `contracts.parts`; the message names filter, sample and remedy."""


class VerdictCheck:
    """Checks what one filter says of the samples of one shard. settings: of the filter."""

    def __init__(self, settings: Filter) -> None:
        self.kind = settings.kind
        self._settings = settings
        self._scored: tuple[str, str | None] | None = None  # the first that was kept, and the name of its score

    def each(self, keys: Sequence[str], verdicts: Any) -> Sequence[Verdict]:
        """The verdicts, one on each key; raises `BadVerdict` for any that the build cannot use."""
        if not isinstance(verdicts, Sequence) or len(verdicts) != len(keys):
            first = keys[0] if keys else "no sample"
            count = len(verdicts) if isinstance(verdicts, Sequence) else f"a {type(verdicts).__name__} of"
            self._refuse(first, f"{count} verdicts on {len(keys)} from this on; return a list of one each, in order")
        for key, verdict in zip(keys, verdicts, strict=True):
            self._check(key, verdict)
        return verdicts

    def captions(self, candidate: CaptionedCandidate, judged: Any) -> CaptionedCandidate | Drop:
        """As `each`, of a filter of captions: the candidate with some of its captions, or a `Drop`."""
        if isinstance(judged, Drop):
            self._check(candidate.key, judged)
            return judged
        if isinstance(judged, CaptionedCandidate):
            left = {name: getattr(judged, name) for name in ("captions0", "captions1")}
            fewer = all(
                isinstance(texts, tuple) and texts and all(text in getattr(candidate, name) for text in texts)
                for name, texts in left.items()
            )
            if fewer and judged == replace(candidate, **left):
                return judged
        self._refuse(candidate.key, f"answered by {judged!r:.300}; return this candidate, at most with fewer captions")

    def added(self, key: str, scores: dict[str, float], name: str, value: float) -> None:
        """Add a score to those of a sample; raises `BadVerdict` where it has one of this name."""
        if name in scores:
            self._refuse(key, f"has a score {name!r} already; name this one otherwise, or name the filter once")
        scores[name] = value

    def _check(self, key: str, verdict: Any) -> None:
        """A reason of a verdict is declared, its number is finite, and all that is kept is scored by one name: loaders
        need the same keys in the JSON of every sample.
        """
        reason, number, name = "", None, None
        if isinstance(verdict, Drop):
            reason, number = verdict.reason, verdict.score
        elif isinstance(verdict, Score):
            number, name = verdict.value, verdict.name
        elif not isinstance(verdict, Keep):
            self._refuse(key, f"a {type(verdict).__name__}, not a Keep, Drop or Score; return one verdict a sample")
        if isinstance(verdict, Drop) and reason not in [*self._settings.meanings]:
            self._refuse(key, f"reason {reason!r} is not explained; add it to {type(self._settings).__name__}.reasons")
        scored = number is not None or isinstance(verdict, Score)
        if scored and not (isinstance(number, float) and math.isfinite(number)):
            self._refuse(key, f"a score of {number!r}; give a finite Python float, or drop the sample")
        if isinstance(verdict, Score) and not (isinstance(name, str) and name and name.isprintable()):
            self._refuse(key, f"a score of name {name!r}; name it by a printable text")
        if not isinstance(verdict, Drop):
            self._scored = self._scored or (key, name)
            if name != self._scored[1]:
                problem = f"scored as {name!r}, and {self._scored[0]} as {self._scored[1]!r}"
                self._refuse(key, f"{problem}; score all that is kept by one name, or nothing")

    def _refuse(self, key: str, problem: str) -> NoReturn:
        raise BadVerdict(f"{FILTERS.named(self.kind)}: {key}: {problem}")
