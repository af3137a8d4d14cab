"""Records of files: CSV, TSV, JSON, JSON lines and Parquet, also packed; what is wrong is said with its place."""

import codecs
import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BeforeValidator, Field

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import AnnotationFile, Place
from twinset.generators.reasons import reasons_beside
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder, inside
from twinset.shards.storage.parquet_reader import batches


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


#: Setting: files or folders of annotations, also one alone.
SeveralFiles = Annotated[
    tuple[Annotated[Location, Place("any", "annotations")], ...], BeforeValidator(_listed), Field(min_length=1)
]
#: Setting: files of one format, also one alone.
AnnotationFiles = Annotated[tuple[AnnotationFile, ...], BeforeValidator(_listed), Field(min_length=1)]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST = 1e7  # seconds, 115 days: what lies beyond is no time in a video, and sums of it may not be finite
LONGEST_LINE = 1 << 20  # bytes; a longer line is not held
MOST_EXPANDED = 1 << 30  # bytes of a packed file that is held whole

#: Why a line of a file is left out.
LINE_REASONS = reasons_beside(__file__, "lines")
#: Why a record is left out for the terms that it states.
TERM_REASONS = reasons_beside(__file__, "terms")
#: Why a record of `read_records` is left out.
RECORD_REASONS = {**LINE_REASONS, **reasons_beside(__file__, "records")}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of a file that cannot be used. place: such as ``line 12``; reason: one of a few words."""

    place: str
    reason: str


Record = Mapping[str, Any] | Skipped


class Met(set[bytes]):
    """Texts that were met, as digests: about 100 bytes of memory each."""

    def before(self, text: str) -> bool:
        """Whether a text was met before; from now on it was."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = digest in self
        self.add(digest)
        return known


def read_bytes(path: Path) -> bytes:
    """The whole file, ``.gz`` unpacked; raises `WrongUse` where it cannot be read, or is larger than is held."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(MOST_EXPANDED + 1 if path.suffix == ".gz" else -1)
    except (OSError, EOFError, zlib.error) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise WrongUse(f"{path}: {problem}; name a file that this user may read, or fetch it again") from error
    if path.suffix == ".gz" and len(content) > MOST_EXPANDED:
        raise WrongUse(f"{path}: expands to more than {MOST_EXPANDED:,} bytes; unpack it first, if it is meant so")
    return content


def read_json(path: Path, leave_out: bool = False) -> Any:
    """The file as one JSON value, ``.gz`` too.

    leave_out: whether a record with a repeated key, or with text that is not UTF-8, is found by `checked` and left out.
    Raises `WrongUse` naming the place where it is not JSON, and else for these too.
    """
    raw = read_bytes(path)
    try:
        encoding = "utf-16" if raw[:2] in UTF_16_MARKS else "utf-8-sig"
        text = raw.decode(encoding, "surrogateescape" if leave_out else "strict")
        value = json.loads(text, object_pairs_hook=partial(_object, leave_out))
        if isinstance(value, Skipped):
            raise ValueError("its object has a key twice")
        if not leave_out and re.search(r"\\u[dD]", text):
            # Half a surrogate pair is valid JSON and no text: it could not be written into a shard.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (ValueError, RecursionError) as error:
        raise WrongUse(
            f"{path}: not JSON that can be read ({error}); correct it, as UTF-8, or fetch it again"
        ) from error


def _object(leave_out: bool, pairs: list[tuple[str, Any]]) -> Any:
    """A JSON object; of one whose keys do not all differ, of which the parser would keep the last, a `Skipped`, or
    ValueError."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    if leave_out:
        return Skipped("", "repeated-key")
    repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
    raise ValueError(f"one object has the key {repeated[:100]!r} twice; the last one would win silently")


def checked(value: Any, place: str) -> Any:
    """A value that was read with ``leave_out``; a `Skipped` where a key is repeated in it, or text is not UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except (TypeError, UnicodeEncodeError, RecursionError) as error:  # TypeError: of a `Skipped` within
        reasons = {TypeError: "repeated-key", UnicodeEncodeError: "not-utf-8", RecursionError: "not-json"}
        return Skipped(place, reasons[type(error)])


def json_value(body: bytes, place: str) -> Any:
    """The JSON value of a line, or of a file in a tar; a `Skipped` where it is none."""
    try:
        text = body.decode("utf-8-sig", "surrogateescape")
        return checked(json.loads(text, object_pairs_hook=partial(_object, True)), place)
    except (ValueError, RecursionError):
        return Skipped(place, "not-json")


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers (from 1) and values of a file of one JSON value a line, ``.gz`` too; empty lines are left out.

    A line that cannot be read gives a `Skipped`. Raises `WrongUse` when no line can be read.
    """
    first, readable = "", False
    for number, line in lines(path):
        value = json_value(line.encode(), f"line {number}") if isinstance(line, str) else line
        if isinstance(value, Skipped):
            first = first or f"{value.place}: {value.reason}"
        readable = readable or not isinstance(value, Skipped)
        yield number, value
    if first and not readable:
        raise WrongUse(f"{path}: not one line is JSON ({first}); name a file of one value a line")


def lines(path: Path, empty: bool = False) -> Iterator[tuple[int, str | Skipped]]:
    """Numbers (from 1) and texts of the lines of a file, ``.gz`` too, without their ends; ``empty`` ones on demand.

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
                if not (line := line.rstrip(b"\r\n")).strip() and not empty:
                    continue
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError:
                    yield number, Skipped(f"line {number}", "not-utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise WrongUse(f"{path}: cannot be read to its end ({error}); fetch the file again") from error


def _readline(stream: Any) -> Callable[[int], bytes]:
    """Reads a line of a stream as UTF-8; Excel's "Unicode text" is UTF-16 with a mark."""
    if stream.peek(2)[:2] not in UTF_16_MARKS:
        return cast(Callable[[int], bytes], stream.readline)
    text = io.TextIOWrapper(stream, "utf-16", newline="\n")
    return lambda size: text.readline(size).encode("utf-8", "surrogatepass")


def _parquet_rows(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, streamed; structs, such as an image with its bytes, are no columns."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            columns = [field.name for field in file.schema_arrow if not pa.types.is_struct(field.type)]
        for batch in batches(path, choose(columns)):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:  # of texts, and of times
        raise WrongUse(f"{path}: not a Parquet file that can be read ({error}); fetch or write it again") from error


DELIMITERS = "\t,;|"
NAMED_DELIMITER = re.compile(f"sep=([{DELIMITERS}])")  # a first line that Excel writes and reads
TABLES = (".csv", ".tsv", ".txt", ".token")
FORMS = ".csv, .tsv, .json (a list of objects), .jsonl or .parquet, also with .gz but the last"


def records(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[tuple[str, int, Any]]:
    """Records in order: what their format calls one, its number from 1, and its fields or why there are none.

    Args:
        path: in one of `FORMS`. A ``.json`` is held whole, all others are streamed. In a table of text, with any of
            `DELIMITERS`, the first line names the columns and all values are text.
        choose: is given the names of columns, and returns those that are read of Parquet.

    Raises:
        WrongUse: the file is of another kind or cannot be read, or ``choose`` raises it.
    """

    def chosen(names: Sequence[str]) -> Sequence[str]:
        columns = choose(names)
        if repeated := next((name for name in columns if names.count(name) > 1), ""):
            raise WrongUse(f"{path}: two columns are called {repeated!r}; rename one")
        return columns

    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    numbered: Iterable[tuple[int, Any]]
    if suffix == ".parquet":
        numbered, noun = enumerate(_parquet_rows(path, chosen), 1), "row"
    elif suffix == ".json":
        whole = read_json(path, leave_out=True)
        if not isinstance(whole, list):
            raise WrongUse(f"{path}: not a JSON list of objects; write one, or another of {FORMS}")
        numbered, noun = enumerate((checked(value, "") for value in whole), 1), "record"
    elif suffix in (".jsonl", ".ndjson"):
        numbered, noun = read_json_lines(path), "line"
    elif suffix in TABLES:
        numbered, noun = _table_rows(path, chosen), "line"
    else:
        raise WrongUse(f"{path}: records are {FORMS}, not {suffix or 'without a suffix'}")
    yield from ((noun, number, value) for number, value in numbered)


def read_records(
    path: Path, fields: Collection[str], optional: Collection[str] = (), remedy: str = "name it with source.fields"
) -> Iterator[tuple[str, Record]]:
    """Place and fields of each of the `records` of a file; one that is not an object gives a `Skipped`.

    fields: that are asked for. optional: further ones, which may be absent. Other columns of Parquet are not read.
    remedy: what to do where a table lacks a column.

    Raises `WrongUse` as `records`, and where a table lacks a column.
    """

    def choose(names: Sequence[str]) -> Sequence[str]:
        if missing := [name for name in fields if name not in names]:
            there = ", ".join(names)[:200]
            raise WrongUse(f"{path}: no column {missing[0]!r} of text (it has {there}); {remedy}")
        return [name for name in names if name in (*fields, *optional)]

    for noun, number, value in records(path, choose):
        place = f"{path.name} {noun} {number}"
        reason = value.reason if isinstance(value, Skipped) else "not-an-object"
        yield place, value if isinstance(value, dict) else Skipped(place, reason)


def delimiter_of(line: str) -> str:
    """The one that a table's first line has most of, or names as Excel does; a comma where it has none."""
    if named := NAMED_DELIMITER.fullmatch(line):
        return named[1]
    return max(DELIMITERS, key=line.count) if any(delimiter in line for delimiter in DELIMITERS) else ","


def _table_rows(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[tuple[int, Record]]:
    """Line numbers and rows of a table of text, by the names of its first line, or of the one behind ``sep=;``.

    A line whose quotation marks are wrong is left out; one that opens a mark which nothing closes, no table at all.
    """
    first = next((line for _, line in lines(path)), "")
    if isinstance(first, Skipped):
        what = f"its first line, of names of columns, is {first.reason}"
        raise WrongUse(f"{path}: {what}; save the file as UTF-8")
    delimiter, number, problem = delimiter_of(first), 0, ""

    def texts() -> Iterator[str]:
        nonlocal number, problem
        for at, line in lines(path, empty=True):  # a quoted field may hold some
            number, problem = at, line.reason if isinstance(line, Skipped) else problem
            yield "\n" if isinstance(line, Skipped) else f"{line}\n"

    csv.field_size_limit(LONGEST_LINE)  # a longer line is not held
    rows = csv.reader(texts(), delimiter=delimiter, strict=True, quoting=_quoting(path, delimiter))
    try:
        heads = (row for row in rows if "".join(row).strip())
        names = next(heads, [])
        if NAMED_DELIMITER.fullmatch(first):
            names = next(heads, [])
        choose(names)
        while True:
            before = number
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                if "unexpected end" in str(error):
                    raise
                for line in range(before + 1, number + 1):
                    yield line, Skipped(f"line {line}", problem or "wrong-quotes")
                problem = ""
                continue
            if not problem and len(row) < 2 and not "".join(row).strip():
                continue  # an empty line
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
