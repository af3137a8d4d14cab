"""The contract that every source keeps, as a check that any test can call."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from twinset.contracts.candidate import SPLIT, Candidate, CaptionedCandidate, from_row, to_row
from twinset.contracts.errors import TwinsetError
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.parts import check_settings
from twinset.generators.image_pairs import NamedPairCandidate
from twinset.shards.contracts import Context, Source, TableStage

RECORDS = 8  # of an annotation file, that are left out in turn
FEWEST = 3  # candidates of which most must keep their identities
LINES = (".jsonl", ".tsv", ".csv", ".txt")


def check_source(source: Source, context: Context, most: int = 1000, make: int = 8) -> None:
    """Raise AssertionError when a source does not keep the contract of `shards.contracts`.

    Settings survive the way to a worker; two plans are equal; keys and identities differ; groups are contiguous; all
    reasons are explained; what is left out is named with its place; each candidate is answered once, in order; captions
    are not blank; provenance has one form. Of each annotation file of lines or a JSON list the plan is repeated without
    a record: other candidates keep their identities, and the record is missed.

    Args:
        source: settings whose inputs are at hand.
        context: of the stage. Make one with `shards.contracts.Context`.
        most: candidates that are planned.
        make: candidates that are made; 0 where that takes too long for a test. None are while people are waited for.
    """
    check_settings(source)
    first, second = (source.open(context) for _ in range(2))
    inputs = [opened.inputs() for opened in (first, second)]
    assert isinstance(inputs[0], str), f"inputs() gives a {type(inputs[0]).__name__}; return a digest, as text"
    assert inputs[0] == inputs[1], "inputs() differs between two generators of the same settings"
    if isinstance(first, TableStage):
        assert isinstance(second, TableStage)
        _check_table(first, second, context)
        return
    planned = _planned(first, most)
    assert planned, "nothing is planned; give the check inputs of which something is"
    for again in (second, first):
        same = planned == _planned(again, most) and first.excluded == second.excluded
        assert same, "two plans differ; plan in a fixed order, sample from self.stage.seed alone, keep no state"
    _check_candidates(planned, first, context)
    _check_left_out(first)
    if len(planned) < most:  # else what is missed may come after
        _check_records(source, first, planned, context)
    if make and first.waiting() is None:
        _check_made(first, planned[:make])


def _check_table(first: TableStage, second: TableStage, context: Context) -> None:
    """What `transform` gives has the declared columns, one row an identity, and is the same again."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        tables = [context.earlier(name).frame(Path(folder)) for name in first.reads]
        tried = [opened.transform(*tables) for opened in (first, second)]
        frames = [rows.collect() if isinstance(rows, pl.LazyFrame) else rows for rows in tried]
    assert frames[0].height > 0, "transform() gives no row; give the check inputs of which something comes"
    assert frames[0].equals(frames[1]), "two transforms differ; sort, and sample from self.stage.seed alone"
    declared = first.row_schema.names if first.row_schema is not None else []
    absent = [name for name in ("identity", *TERMS, *declared) if name not in frames[0].columns]
    assert not absent, f"transform() gives no column {', '.join(absent)}"
    assert not frames[0]["identity"].is_duplicated().any(), "transform() gives two rows of one identity"
    _check_left_out(first)


def _planned(generator: Source, most: int) -> list[Candidate]:
    generator.excluded.clear()
    return list(islice(generator.plan(), most))


def _check_candidates(planned: Sequence[Candidate], generator: Source, context: Context) -> None:
    for candidate in planned:
        key, kind = candidate.key, type(candidate)
        assert kind is generator.candidate, f"{key}: a {kind.__name__}, not the class's candidate"
        assert from_row(kind, to_row(candidate)) == candidate, f"{key}: fields change on the way through Parquet"
        own = re.fullmatch(rf"{re.escape(context.name)}-[a-z0-9]+", key)
        assert own is not None, f"{key}: not a key of twinset.contracts.canonical.sample_key(self.stage.name, ...)"
        assert candidate.identity, f"{key}: no identity; give identity_of() what sample_key() hashes"
        assert re.fullmatch(SPLIT, candidate.split) is not None, f"{key}: split {candidate.split!r} is not a word"
        if isinstance(candidate, CaptionedCandidate):
            for number, captions in enumerate((candidate.captions0, candidate.captions1)):
                written = bool(captions) and all(map(str.strip, captions))
                assert written, f"{key}: a caption {number} is absent or blank; leave the record out"
    named = (candidate for candidate in planned if isinstance(candidate, NamedPairCandidate))
    _check_forms((candidate.key, json.loads(candidate.provenance)) for candidate in named)
    for name in ("key", "identity"):
        if repeated := _repeated(getattr(candidate, name) for candidate in planned):
            raise AssertionError(f"{name} {repeated!r} is that of two candidates; leave one out, or tell them apart")
    if repeated := _repeated(group for group, _ in groupby(planned, key=lambda candidate: candidate.group)):
        raise AssertionError(f"candidates of group {repeated!r} do not follow each other; plan group by group")


def _check_left_out(generator: Source) -> None:
    total, places = sum(generator.excluded.values()), [place for _, place in generator.excluded.examples]
    assert bool(places) == bool(total), f"{total} records are left out, {len(places)} are named; use excluded.add()"
    assert all(places), "a record is left out without its place"
    _check_explained(generator, generator.excluded)


def _check_records(source: Source, generator: Source, planned: Sequence[Candidate], context: Context) -> None:
    """Plan again without a record of an annotation file, for several records: most candidates are the same."""
    before = {candidate.identity: candidate for candidate in planned}
    for setting, place, path in source.places():
        alone = place.what == "file" and place.need == "annotations" and "." not in setting
        if not alone or not isinstance(path, Path) or getattr(source, setting) != path:
            continue
        for number, (record, content) in enumerate(_without_one(path)):
            where = f"{path.name} without {record}"
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / path.name).write_bytes(content)
                shorter = source.model_copy(update={setting: Path(folder) / path.name}).open(context)
                try:
                    fewer = list(islice(shorter.plan(), len(planned) + 1))
                except TwinsetError:  # a file that is wrong as a whole, as without its header
                    continue
            missed = fewer != planned or shorter.excluded != generator.excluded
            assert missed, f"{where}: the plan is the same; count it with self.excluded.add(reason, place)"
            moved = [new for new in fewer if before.get(new.identity) != new]  # of what counts positions, most
            if number == 0 and len(fewer) >= FEWEST and 2 * len(moved) >= len(fewer):
                raise AssertionError(
                    f"{where}: identity {moved[0].identity} is that of another record; take what the source calls a "
                    "record, never its position: asking for more samples must keep the first ones"
                )


def _without_one(path: Path) -> Iterator[tuple[str, bytes]]:
    """Contents of a file of lines, or of a JSON list, without one of its records, the second one first."""
    content = path.read_bytes()
    try:
        listed = json.loads(content) if path.suffix == ".json" else None
    except ValueError:  # lines of JSON
        return
    if isinstance(listed, list):
        for n in range(1, min(len(listed), RECORDS)):
            yield f"its record {n + 1}", json.dumps(listed[:n] + listed[n + 1 :]).encode()
    elif path.suffix in LINES:
        lines = content.splitlines(keepends=True)
        for n in range(1, min(len(lines), RECORDS)):
            if lines[n].strip() and not lines[n].startswith(b"#"):
                yield f"line {n + 1}", b"".join(lines[:n] + lines[n + 1 :])


def _check_made(generator: Source, candidates: Sequence[Candidate]) -> None:
    made = list(generator.make(candidates))
    answered, asked = [result.key for result in made], [candidate.key for candidate in candidates]
    assert answered == asked, f"make() answers {answered[:5]} to {asked[:5]}; one result a candidate, in order"
    provenance = list[tuple[str, Mapping[str, Any]]]()
    for result in made:
        if isinstance(result, Rejected):
            _check_explained(generator, [result.reason])
            _check_media(generator, result)
            continue
        kind = "table" if isinstance(result, TableRows) else type(result).kind.name
        assert kind == generator.makes, f"{result.key}: a {kind} from a source that makes {generator.makes}s"
        if isinstance(result, TableRows):
            columns = generator.row_schema.names if generator.row_schema is not None else []
            same = all(row.keys() == {*columns} for row in result.rows)
            assert same, f"{result.key}: rows have other columns than {columns}"
        else:
            provenance.append((result.key, result.provenance))
    _check_forms(provenance)


def _check_forms(provenance: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Loaders need the same keys with the same types in the JSON of every sample."""
    first: tuple[str, Any] | None = None
    for key, about in provenance:
        first = first or (key, _form(about))
        problem = f"that of {first[0]} is {first[1]}; give all the same keys and types"
        assert _form(about) == first[1], f"{key}: provenance {_form(about)}, {problem}"


def _form(value: Any) -> Any:
    """The JSON type of a value: of an object by key."""
    return {name: _form(field) for name, field in value.items()} if isinstance(value, Mapping) else type(value).__name__


def _check_media(generator: Source, rejected: Rejected) -> None:
    """A missing file that appears must be noticed: it is looked for where the source says its media are."""
    if rejected.media is not None:
        media = generator.media_files()
        size = media.size(rejected.media) if media is not None else None
        stated = f"{rejected.media} has {rejected.media_size} bytes by its rejection"
        problem = f"{stated}, and {size} where media_files() looks; both must look in one place"
        assert media is not None and size == rejected.media_size, f"{rejected.key}: {problem}"


def _check_explained(generator: Source, reasons: Iterable[str]) -> None:
    for reason in reasons:
        where = f"{type(generator).__name__}.reasons"
        assert reason in generator.meanings, f"reason {reason!r} is not explained; add it to {where}"


def _repeated(values: Iterable[str]) -> str | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)
