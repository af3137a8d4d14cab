"""The contract that every source keeps, as a check that any test can call."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any, TypeVar

from twinset.generators.named_pairs import NamedPairCandidate
from twinset.manifests.candidate import SPLIT, Candidate, CaptionedCandidate, from_row, to_row
from twinset.manifests.errors import TwinsetError, in_words
from twinset.shards.contracts import EXAMPLES, Context, Generator, Source
from twinset.shards.kinds.samples import Rejected, TableRows

T = TypeVar("T")


class BrokenContract(AssertionError):
    """A source does what the engine does not expect; the message says what, and what to correct."""


def check_source(source: Source, context: Context, most: int = 1000, make: int = 8) -> None:
    """Raise `BrokenContract` when a source does not keep the contract of `shards.contracts`.

    Settings survive the way to a worker; two plans are equal; keys and identities differ; groups are contiguous; all
    reasons are explained; what is left out is named with its place; each candidate is answered once, in order; captions
    are not blank; provenance has one form; the words for the card are Markdown.

    Args:
        source: settings whose inputs are at hand.
        context: of the stage. Make one with `shards.contracts.Context`.
        most: candidates that are planned.
        make: candidates that are made; 0 where that takes too long for a test.
    """
    travelled = type(source).model_validate(source.model_dump(mode="json"))
    _expect(travelled == source, "settings change on the way through JSON; use types that pydantic writes and reads")
    _check_words(source)
    first, second = (_called(f"{source.kind}: open()", partial(source.open, context)) for _ in range(2))
    _expect(isinstance(first, Generator), f"open() gives a {type(first).__name__}; return a Generator")
    inputs = [_called(f"{source.kind}: inputs()", one.inputs) for one in (first, second)]
    _expect(isinstance(inputs[0], str), f"inputs() gives a {type(inputs[0]).__name__}; return a digest, as text")
    _expect(inputs[0] == inputs[1], "inputs() differs between two generators of the same settings")
    planned = _planned(first, most)
    _expect(bool(planned), "nothing is planned; give the check inputs of which something is")
    _expect(
        planned == _planned(second, most), "two plans differ; plan in a fixed order, sample from context.seed alone"
    )
    _expect(planned == _planned(first, most), "a second plan() of one generator differs; keep no state between plans")
    _check_candidates(source, first, planned, context)
    _expect(first.excluded == second.excluded, "two plans leave out other records")
    _check_left_out(source, first)
    if make:
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
        _expect(isinstance(text, str), f"{name}.{call}() gives a {type(text).__name__}; return text, empty for nothing")
    notes = source.notes().strip()
    _expect(not notes or notes.startswith(("* ", "- ")), f"{name}.notes(): not a Markdown list; begin each with '* '")
    for reason, meaning in source.meanings.items():
        _expect(
            isinstance(meaning, str) and bool(meaning.strip()), f"reason {reason!r} of {name}.reasons has no meaning"
        )


def _planned(generator: Generator[Any], most: int) -> list[Candidate]:
    return _called(f"{generator.source.kind}: plan()", lambda: list(islice(generator.plan(), most)))


def _check_candidates(
    source: Source, generator: Generator[Any], planned: Sequence[Candidate], context: Context
) -> None:
    for one in planned:
        _expect(type(one) is generator.candidate, f"{one.key}: a {type(one).__name__}, not the class's candidate")
        _expect(from_row(type(one), to_row(one)) == one, f"{one.key}: fields change on the way through Parquet")
        own = re.fullmatch(rf"{re.escape(context.name)}-[a-z0-9]+", one.key)
        _expect(own is not None, f"{one.key}: not a key of twinset.manifests.canonical.sample_key(self.name, ...)")
        _expect(bool(one.identity), f"{one.key}: no identity; give identity_of() what sample_key() hashes")
        _expect(re.fullmatch(SPLIT, one.split) is not None, f"{one.key}: split {one.split!r} is not a word")
        if isinstance(one, CaptionedCandidate):
            for number, captions in enumerate((one.captions0, one.captions1)):
                said = bool(captions) and all(map(str.strip, captions))
                _expect(said, f"{one.key}: a caption {number} is absent or blank; leave the record out")
    _check_forms((one.key, json.loads(one.provenance)) for one in planned if isinstance(one, NamedPairCandidate))
    for name in ("key", "identity"):
        if repeated := _repeated(getattr(one, name) for one in planned):
            raise BrokenContract(f"{name} {repeated!r} is that of two candidates; leave one out, or tell them apart")
    if repeated := _repeated(group for group, _ in groupby(planned, key=lambda one: one.group)):
        raise BrokenContract(f"candidates of group {repeated!r} do not follow each other; plan group by group")


def _check_left_out(source: Source, generator: Generator[Any]) -> None:
    total, named = sum(generator.excluded.values()), len(generator.excluded.examples)
    _expect(named == min(total, EXAMPLES), f"{total} records are left out, {named} are named; use excluded.add()")
    _expect(all(place for _, place in generator.excluded.examples), "a record is left out without its place")
    _check_explained(source, generator.excluded)


def _check_made(source: Source, generator: Generator[Any], candidates: Sequence[Candidate]) -> None:
    made = _called(f"{source.kind}: make()", lambda: list(generator.make(candidates)))
    answered, asked = [one.key for one in made], [one.key for one in candidates]
    _expect(answered == asked, f"make() answers {answered[:5]} to {asked[:5]}; one result a candidate, in order")
    for one in made:
        if isinstance(one, Rejected):
            _check_explained(source, [one.reason])
            _check_media(source, one)
        elif isinstance(one, TableRows):
            _expect(source.makes == "table", f"{one.key}: rows of a table from a source that makes {source.makes}s")
            columns = generator.columns.names if generator.columns is not None else []
            _expect(all(list(row) == columns for row in one.rows), f"{one.key}: rows have other columns than {columns}")
        else:
            kind = type(one).kind.name
            _expect(kind == source.makes, f"{one.key}: a {kind} from a source that makes {source.makes}s")
    samples = [one for one in made if not isinstance(one, Rejected | TableRows)]
    for sample in samples:
        _check_explained(source, sample.flags)
    _check_forms((one.key, one.provenance) for one in samples)


def _check_forms(provenance: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Loaders need the same keys with the same types in the JSON of every sample."""
    first: tuple[str, Any] | None = None
    for key, about in provenance:
        first = first or (key, _form(about))
        _expect(
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
    _expect(
        found == rejected.media_size,
        f"{rejected.key}: media_files() finds {found} bytes as {rejected.media}, the rejection says "
        f"{rejected.media_size}; both must look in one place",
    )


def _check_explained(source: Source, reasons: Iterable[str]) -> None:
    for reason in reasons:
        _expect(
            reason in source.meanings, f"reason {reason!r} is not explained; add it to {type(source).__name__}.reasons"
        )


def _repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _called(what: str, call: Callable[[], T]) -> T:
    """What a part of the source gives; an error that no user of it could read is a broken contract."""
    try:
        return call()
    except TwinsetError:
        raise
    except Exception as error:
        raise BrokenContract(
            f"{what} raises {in_words(error)}; correct it, or raise WrongUse that names the input and the remedy"
        ) from error


def _expect(kept: bool, problem: str) -> None:
    if not kept:
        raise BrokenContract(problem)
