"""Records of files: CSV, TSV, JSON, JSON lines and Parquet, also packed; what is wrong is said with its place."""

import codecs
import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BeforeValidator, Field

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import AnnotationFile, Place
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder, inside
from twinset.shards.storage.parquet_reader import batches


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


_Files = tuple[Annotated[Location, Place("any", "annotations")], ...]
#: Setting: files or folders of annotations, also one alone.
SeveralFiles = Annotated[_Files, BeforeValidator(_listed), Field(min_length=1)]
#: Setting: files of one format, also one alone.
AnnotationFiles = Annotated[tuple[AnnotationFile, ...], BeforeValidator(_listed), Field(min_length=1)]
#: As `SeveralFiles`, or none.
OptionalFiles = Annotated[_Files, BeforeValidator(_listed)]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST = 1e7  # seconds, 115 days: what lies beyond is no time in a video, and sums of it may not be finite
LONGEST_LINE = 1 << 20  # bytes; a longer line is not held
MOST_EXPANDED = 1 << 30  # bytes of a packed file that is held whole

#: Why a line of a file is left out.
LINE_REASONS = reasons_beside(__file__, "lines")
#: Why a record is left out for the terms that it states.
TERM_REASONS = reasons_beside(__file__, "terms")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of a file that cannot be used. place: such as ``line 12``; reason: one of a few words."""

    place: str
    reason: str


def read_bytes(path: Path) -> bytes:
    """The whole file; raises `WrongUse` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise WrongUse(f"{path}: cannot be read ({error.strerror}); name a file that this user may read") from error


def read_json(path: Path) -> Any:
    """The file as one JSON value, ``.gz`` too; raises `WrongUse` naming the place where it is not UTF-8 or not JSON."""
    if path.suffix != ".gz":
        raw = read_bytes(path)
    else:
        try:
            with gzip.open(path) as stream:
                raw = stream.read(MOST_EXPANDED + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise WrongUse(f"{path}: cannot be read to its end ({error}); fetch the file again") from error
        if len(raw) > MOST_EXPANDED:
            raise WrongUse(f"{path}: expands to more than {MOST_EXPANDED:,} bytes; unpack it first, if it is meant so")
    try:
        if raw[:2] in UTF_16_MARKS:
            raw = raw.decode("utf-16").encode("utf-8", "surrogatepass")
        return json_value(raw.removeprefix(BYTE_ORDER_MARK))
    except UnicodeDecodeError as error:
        at = len(raw) - len(error.object) + error.start
        what = f"byte {at} (0x{error.object[error.start]:02x}) is not UTF-8; save the file as UTF-8"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        what = f"{where}: not JSON ({error.msg}); correct it or fetch the file again"
    except UnicodeEncodeError as error:
        what = f"holds half a surrogate pair ({error.object[error.start]!r}); correct it"
    except RepeatedKey as error:
        what = f"one object has the key {str(error)[:100]!r} twice; the last one would win silently: remove one"
    except (ValueError, RecursionError) as error:
        what = f"not JSON that can be read ({error}); fetch the file again"
    raise WrongUse(f"{path}: {what}")


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers (from 1) and values of a file of one JSON value a line, ``.gz`` too; empty lines are left out.

    A line that cannot be read gives a `Skipped`. Raises `WrongUse` when no line can be read.
    """
    read, first = False, None
    for number, line in lines(path):
        value: Any = line
        if isinstance(line, str):
            try:
                value = json_value(line.encode())
            except RepeatedKey:
                value = Skipped(f"line {number}", "repeated-key")
            except (ValueError, RecursionError):
                value = Skipped(f"line {number}", "not-json")
        if isinstance(value, Skipped):
            first = first or value
        else:
            read = True
        yield number, value
    if first is not None and not read:
        raise WrongUse(f"{path}: not one line is JSON ({first.place}: {first.reason}); name a file of one value a line")


def lines(path: Path) -> Iterator[tuple[int, str | Skipped]]:
    """Numbers (from 1) and texts of the lines of a file, ``.gz`` too, without their ends; empty lines are left out.

    Lines end with a line feed only: captions hold other separators. They are UTF-8, or UTF-16 where the file begins
    with its mark. Raises `WrongUse` when the file cannot be read on.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as packed:
            readline, number = _readline(packed), 0
            while line := readline(LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                    while (rest := readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                    yield number, Skipped(f"line {number}", "too-long")
                    continue
                if number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                if not (line := line.rstrip(b"\r\n")).strip():
                    continue
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError:
                    yield number, Skipped(f"line {number}", "not-utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise WrongUse(f"{path}: cannot be read to its end ({error}); fetch the file again") from error


UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _readline(stream: Any) -> Callable[[int], bytes]:
    """Reads a line of a stream as UTF-8; Excel's "Unicode text" is UTF-16 with a mark."""
    if stream.peek(2)[:2] not in UTF_16_MARKS:
        return cast(Callable[[int], bytes], stream.readline)
    text = io.TextIOWrapper(stream, "utf-16", newline="\n")
    return lambda size: text.readline(size).encode("utf-8", "surrogatepass")


def parquet_rows(path: Path, columns: Callable[[pa.Schema], Sequence[str]]) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, streamed. columns: chooses those that are read, or raises `WrongUse`.

    Raises `WrongUse` where it is no Parquet file, or ends early.
    """
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            chosen = columns(file.schema_arrow)
        for batch in batches(path, chosen):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise WrongUse(f"{path}: not a Parquet file that can be read ({error}); fetch or write it again") from error


def text_of(value: Any) -> str:
    """A field that is text or a whole number, as text; empty for anything else."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value  # pandas, in columns with gaps
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def is_media_name(name: str, folder: MediaFolder | None = None) -> bool:
    """Whether a name of a video or image that comes from data is text that stays within a media folder. folder: that
    one, in which an absolute path may lie.
    """
    try:
        name.encode("utf-8")
        inside(Path(), name.replace("\\", "/")) if folder is None else folder.places(name)
    except (EscapesRoot, UnicodeEncodeError):
        return False
    return True


def refuse_unusable(path: Path, left_out: LeftOut, remedy: str) -> NoReturn:
    """Raise `WrongUse` for a file of which nothing can be used, naming the first record that was left out."""
    first = ", ".join(f"{place}: {reason}" for reason, place in left_out.examples[:1]) or "it is empty"
    raise WrongUse(f"{path}: nothing in it can be used ({first}); {remedy}")


def seconds(value: Any) -> float | None:
    """A time in seconds, from a number or the text of one; None where it is neither, negative or beyond `LONGEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        time = float(value)
    except (ValueError, OverflowError):
        return None
    return time if 0 <= time <= LONGEST else None


def json_value(body: bytes) -> Any:
    """The JSON value of some bytes, with text that can be written again and without repeated keys."""
    value = json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    if b"\\ud" in body.lower():
        # Half a surrogate pair is valid JSON and no text: it could not be written into a shard.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


class RepeatedKey(Exception):
    """A key that stands twice in one JSON object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys all differ; the parser's own keeps the last of equal ones."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RepeatedKey(next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))
    return made


Record = Mapping[str, Any] | Skipped
RECORD_REASONS = {**LINE_REASONS, **reasons_beside(__file__, "records")}
DELIMITERS = "\t,;|"
TABLES = (".csv", ".tsv", ".txt", ".token")
FORMS = ".csv, .tsv, .json (a list of objects), .jsonl or .parquet, also with .gz but the last"


def read_records(path: Path, fields: Collection[str], optional: Collection[str] = ()) -> Iterator[tuple[str, Record]]:
    """Place and fields of each record, in order; a record that is not one gives a `Skipped`.

    Args:
        path: in one of `FORMS`. A ``.json`` is held whole, all others are streamed. In a table of text, with any of
            `DELIMITERS`, the first line names the columns and all values are text.
        fields: that are asked for. Other columns of Parquet are not read.
        optional: further ones, which may be absent.

    Raises:
        WrongUse: the file is of another kind, cannot be read, or lacks a column.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    records: Iterable[tuple[int, Any]]
    if suffix == ".parquet":
        records, noun = enumerate(_rows(path, fields, optional), 1), "row"
    elif suffix == ".json":
        whole = read_json(path)
        if not isinstance(whole, list):
            raise WrongUse(f"{path}: not a JSON list of objects; write one, or another of {FORMS}")
        records, noun = enumerate(whole, 1), "record"
    elif suffix in (".jsonl", ".ndjson"):
        records, noun = read_json_lines(path), "line"
    elif suffix in TABLES:
        records, noun = table_rows(path, lambda names: _check_columns(path, names, fields)), "line"
    else:
        raise WrongUse(f"{path}: records are {FORMS}, not {suffix or 'without a suffix'}")
    for number, value in records:
        place = f"{path.name} {noun} {number}"
        yield place, value if isinstance(value, dict | Skipped) else Skipped(place, "not-an-object")


def _check_columns(path: Path, there: Sequence[str], fields: Collection[str]) -> None:
    if missing := [name for name in fields if name not in there]:
        names = ", ".join(there)[:200]
        raise WrongUse(f"{path}: no column {missing[0]!r} (it has {names}); name it with source.fields")


def _rows(path: Path, fields: Collection[str], optional: Collection[str]) -> Iterator[dict[str, Any]]:
    def columns(schema: pa.Schema) -> list[str]:
        _check_columns(path, schema.names, fields)
        return list(dict.fromkeys((*fields, *(name for name in optional if name in schema.names))))

    return parquet_rows(path, columns)


def delimiter_of(line: str) -> str:
    """The one of `DELIMITERS` that a table's first line has most of; a comma where it has none."""
    return max(DELIMITERS, key=line.count) if any(one in line for one in DELIMITERS) else ","


def table_rows(path: Path, check: Callable[[Sequence[str]], None]) -> Iterator[tuple[int, Record]]:
    """Line numbers and rows of a table of text, by the names of its first line.

    check: is given these names, and raises `WrongUse` where they cannot be used. Raises `WrongUse` also where the file
    cannot be read to its end, or is not CSV.
    """
    first = next((line for _, line in lines(path)), "")
    if isinstance(first, Skipped):
        what = f"its first line, of names of columns, is {first.reason}"
        raise WrongUse(f"{path}: {what}; save the file as UTF-8")
    delimiter, number, problem = delimiter_of(first), 0, ""

    def texts() -> Iterator[str]:
        nonlocal number, problem
        for at, line in lines(path):
            number, problem = at, line.reason if isinstance(line, Skipped) else problem
            yield "\n" if isinstance(line, Skipped) else f"{line}\n"

    rows = csv.reader(texts(), delimiter=delimiter, strict=True, quoting=_quoting(path, delimiter))
    try:
        names = next(rows, [])
        check(names)
        for row in rows:
            if problem or len(row) != len(names):
                yield number, Skipped(f"line {number}", problem or "wrong-columns")
                problem = ""
            else:
                yield number, dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise WrongUse(f"{path}, line {number}: not CSV ({error}); correct it or fetch the file again") from error


def _quoting(path: Path, delimiter: str) -> Any:
    """How csv reads quotation marks: as they stand where a table with tabs was not written by it."""
    if delimiter == "\t":
        texts = (f"{line}\n" for _, line in lines(path) if isinstance(line, str))
        try:
            for row in csv.reader(texts, delimiter=delimiter, strict=True):
                if any("\n" in field and "\t" in field for field in row):
                    return csv.QUOTE_NONE  # a mark in one line was taken for the beginning of what ends in another
        except csv.Error:
            return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL
