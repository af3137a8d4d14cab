"""The contract that every source keeps, as a check that any test can call."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from twinset.contracts.candidate import SPLIT, Candidate, CaptionedCandidate, from_row, to_row
from twinset.contracts.errors import TwinsetError
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.parts import BrokenContract, called, check_settings, expect
from twinset.generators.named_pairs import NamedPairCandidate
from twinset.shards.contracts import Context, Source, TableStage

RECORDS = 8  # of an annotation file, that are left out in turn
FEWEST = 3  # candidates of which most must keep their identities
LINES = (".jsonl", ".tsv", ".csv", ".txt")


def check_source(source: Source, context: Context, most: int = 1000, make: int = 8) -> None:
    """Raise `BrokenContract` when a source does not keep the contract of `shards.contracts`.

    Settings survive the way to a worker; two plans are equal; keys and identities differ; groups are contiguous; all
    reasons are explained; what is left out is named with its place; each candidate is answered once, in order; captions
    are not blank; provenance has one form; the words for the card are Markdown. Of each annotation file of lines or a
    JSON list the plan is repeated without a record: other candidates keep their identities, and the record is missed.

    Args:
        source: settings whose inputs are at hand.
        context: of the stage. Make one with `shards.contracts.Context`.
        most: candidates that are planned.
        make: candidates that are made; 0 where that takes too long for a test. None are while people are waited for.
    """
    check_settings(source)
    _check_words(source)
    first, second = (called(f"{source.kind}: open()", partial(source.open, context)) for _ in range(2))
    inputs = [called(f"{source.kind}: inputs()", opened.inputs) for opened in (first, second)]
    expect(isinstance(inputs[0], str), f"inputs() gives a {type(inputs[0]).__name__}; return a digest, as text")
    expect(inputs[0] == inputs[1], "inputs() differs between two generators of the same settings")
    if isinstance(first, TableStage):
        assert isinstance(second, TableStage)
        _check_table(first, second, context)
        return
    planned = _planned(first, most)
    expect(bool(planned), "nothing is planned; give the check inputs of which something is")
    expect(
        planned == _planned(second, most), "two plans differ; plan in a fixed order, sample from self.stage.seed alone"
    )
    expect(planned == _planned(first, most), "a second plan() of one generator differs; keep no state between plans")
    _check_candidates(source, first, planned, context)
    expect(first.excluded == second.excluded, "two plans leave out other records")
    _check_left_out(source, first)
    if len(planned) < most:  # else what is missed may come after
        _check_records(source, first, planned, context)
    if make and first.waiting() is None:
        _check_made(source, first, planned[:make])


def _check_words(source: Source) -> None:
    """What the card prints; it is printed only when a build ends, which is late to learn of a wrong signature."""
    name = type(source).__name__
    for call, arguments in (("introduction", ()), ("how_made", ({},)), ("notes", ())):
        try:
            text = getattr(source, call)(*arguments)
        except TypeError as error:
            shown = "self, reports" if arguments else "self"
            raise BrokenContract(f"{name}.{call}: {error}; its signature is def {call}({shown}) -> str") from error
        expect(isinstance(text, str), f"{name}.{call}() gives a {type(text).__name__}; return text, empty for nothing")
    notes = source.notes().strip()
    expect(not notes or notes.startswith(("* ", "- ")), f"{name}.notes(): not a Markdown list; begin each with '* '")


def _check_table(first: TableStage, second: TableStage, context: Context) -> None:
    """What `transform` gives has the declared columns, one row an identity, and is the same again."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        tables = [context.earlier(name).frame(Path(folder)) for name in first.reads]
        tried = [called("transform()", partial(opened.transform, *tables)) for opened in (first, second)]
        frames = [rows.collect() if isinstance(rows, pl.LazyFrame) else rows for rows in tried]
    expect(frames[0].height > 0, "transform() gives no row; give the check inputs of which something comes")
    expect(frames[0].equals(frames[1]), "two transforms differ; sort, and sample from self.stage.seed alone")
    declared = first.row_schema.names if first.row_schema is not None else []
    absent = [name for name in ("identity", *TERMS, *declared) if name not in frames[0].columns]
    expect(not absent, f"transform() gives no column {', '.join(absent)}")
    expect(not frames[0]["identity"].is_duplicated().any(), "transform() gives two rows of one identity")
    _check_left_out(first, first)


def _planned(generator: Source, most: int) -> list[Candidate]:
    generator.excluded.clear()
    return called("plan()", lambda: list(islice(generator.plan(), most)))


def _check_candidates(source: Source, generator: Source, planned: Sequence[Candidate], context: Context) -> None:
    for one in planned:
        expect(type(one) is generator.candidate, f"{one.key}: a {type(one).__name__}, not the class's candidate")
        expect(from_row(type(one), to_row(one)) == one, f"{one.key}: fields change on the way through Parquet")
        own = re.fullmatch(rf"{re.escape(context.name)}-[a-z0-9]+", one.key)
        expect(own is not None, f"{one.key}: not a key of twinset.contracts.canonical.sample_key(self.stage.name, ...)")
        expect(bool(one.identity), f"{one.key}: no identity; give identity_of() what sample_key() hashes")
        expect(re.fullmatch(SPLIT, one.split) is not None, f"{one.key}: split {one.split!r} is not a word")
        if isinstance(one, CaptionedCandidate):
            for number, captions in enumerate((one.captions0, one.captions1)):
                said = bool(captions) and all(map(str.strip, captions))
                expect(said, f"{one.key}: a caption {number} is absent or blank; leave the record out")
    _check_forms((one.key, json.loads(one.provenance)) for one in planned if isinstance(one, NamedPairCandidate))
    for name in ("key", "identity"):
        if repeated := _repeated(getattr(one, name) for one in planned):
            raise BrokenContract(f"{name} {repeated!r} is that of two candidates; leave one out, or tell them apart")
    if repeated := _repeated(group for group, _ in groupby(planned, key=lambda one: one.group)):
        raise BrokenContract(f"candidates of group {repeated!r} do not follow each other; plan group by group")


def _check_left_out(source: Source, generator: Source) -> None:
    total, named = sum(generator.excluded.values()), len(generator.excluded.examples)
    expect(bool(named) == bool(total), f"{total} records are left out, {named} are named; use excluded.add()")
    expect(all(place for _, place in generator.excluded.examples), "a record is left out without its place")
    _check_explained(source, generator.excluded)


def _check_records(source: Source, generator: Source, planned: Sequence[Candidate], context: Context) -> None:
    """Plan again without a record of an annotation file, for several records."""
    for setting, place, path in source.places():
        alone = place.what == "file" and place.need == "annotations" and "." not in setting
        if not alone or not isinstance(path, Path) or getattr(source, setting) != path:
            continue
        for number, (record, content) in enumerate(_without_one(path)):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / path.name).write_bytes(content)
                shorter = source.model_copy(update={setting: Path(folder) / path.name}).open(context)
                try:
                    found = list(islice(shorter.plan(), len(planned) + 1))
                except TwinsetError:  # a file that is wrong as a whole, as without its header
                    continue
            missed = found != planned or shorter.excluded != generator.excluded
            expect(
                missed,
                f"{path.name}: without {record} the plan is the same; count it with self.excluded.add(reason, place)",
            )
            if number == 0:
                _check_identities(planned, found, f"{path.name} without {record}")


def _check_identities(planned: Sequence[Candidate], found: Sequence[Candidate], where: str) -> None:
    """Most candidates are the same; of a source that counts positions, those after the record are others."""
    before = {one.identity: one for one in planned}
    moved = [one for one in found if before.get(one.identity) != one]
    if len(found) >= FEWEST and 2 * len(moved) >= len(found):
        known = moved[0].identity
        raise BrokenContract(
            f"{where}: identity {known} is that of another record; take what the source calls a record, never its "
            "position: asking for more samples must keep the first ones"
        )


def _without_one(path: Path) -> Iterator[tuple[str, bytes]]:
    """Contents of a file of lines, or of a JSON list, without one of its records, the second one first."""
    content = path.read_bytes()
    try:
        if path.suffix == ".json" and isinstance(listed := json.loads(content), list):
            for n in range(1, min(len(listed), RECORDS)):
                yield f"its record {n + 1}", json.dumps(listed[:n] + listed[n + 1 :]).encode()
    except ValueError:
        return
    if path.suffix in LINES:
        lines = content.splitlines(keepends=True)
        for n in range(1, min(len(lines), RECORDS)):
            if lines[n].strip() and not lines[n].startswith(b"#"):
                yield f"line {n + 1}", b"".join(lines[:n] + lines[n + 1 :])


def _check_made(source: Source, generator: Source, candidates: Sequence[Candidate]) -> None:
    made = called(f"{source.kind}: make()", lambda: list(generator.make(candidates)))
    answered, asked = [one.key for one in made], [one.key for one in candidates]
    expect(answered == asked, f"make() answers {answered[:5]} to {asked[:5]}; one result a candidate, in order")
    for one in made:
        if isinstance(one, Rejected):
            _check_explained(source, [one.reason])
            _check_media(source, one)
        elif isinstance(one, TableRows):
            expect(source.makes == "table", f"{one.key}: rows of a table from a source that makes {source.makes}s")
            columns = generator.row_schema.names if generator.row_schema is not None else []
            expect(
                all(row.keys() == {*columns} for row in one.rows), f"{one.key}: rows have other columns than {columns}"
            )
        else:
            kind = type(one).kind.name
            expect(kind == source.makes, f"{one.key}: a {kind} from a source that makes {source.makes}s")
    samples = [one for one in made if not isinstance(one, Rejected | TableRows)]
    for sample in samples:
        _check_explained(source, sample.flags)
    _check_forms((one.key, one.provenance) for one in samples)


def _check_forms(provenance: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Loaders need the same keys with the same types in the JSON of every sample."""
    first: tuple[str, Any] | None = None
    for key, about in provenance:
        first = first or (key, _form(about))
        expect(
            _form(about) == first[1],
            f"{key}: provenance {_form(about)}, that of {first[0]} is {first[1]}; give all the same keys and types",
        )


def _form(value: Any) -> Any:
    """The JSON type of a value: of an object by key."""
    return {name: _form(one) for name, one in value.items()} if isinstance(value, Mapping) else type(value).__name__


def _check_media(source: Source, rejected: Rejected) -> None:
    """A missing file that appears must be noticed: it is looked for where the source says its media are."""
    if rejected.media is None:
        return
    media = source.media_files()
    if media is None:
        raise BrokenContract(f"{rejected.key}: {rejected.media} is missing, but media_files() is None")
    found = media.size(rejected.media)
    expect(
        found == rejected.media_size,
        f"{rejected.key}: media_files() finds {found} bytes as {rejected.media}, the rejection says "
        f"{rejected.media_size}; both must look in one place",
    )


def _check_explained(source: Source, reasons: Iterable[str]) -> None:
    for reason in reasons:
        expect(
            reason in source.meanings, f"reason {reason!r} is not explained; add it to {type(source).__name__}.reasons"
        )


def _repeated(values: Iterable[str]) -> str | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)
