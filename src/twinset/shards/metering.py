"""What language models take for a shard: counted while it is made, kept in its log, and in nothing that is hashed.

Answers that were kept on disk count like new ones: the numbers say what a stage takes, however often it was resumed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

MOST = 2**63  # of answers or tokens that a log can tell
PARALLEL_READS = 16  # logs are small: on an object store their latency is what costs


class Tally(NamedTuple):
    """Answers, and the tokens that they took. prompt_tokens, completion_tokens: read and written."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __str__(self) -> str:
        return f"{self.answers:,} answers, {self.prompt_tokens:,} tokens read and {self.completion_tokens:,} written"


_METER: ContextVar[list[Tally] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[list[Tally]]:
    """Collects what `count` is told by this thread while it is entered."""
    tallies = list[Tally]()
    before = _METER.set(tallies)
    try:
        yield tallies
    finally:
        _METER.reset(before)


def count(tally: Tally) -> None:
    """Count answers for the shard that is being made."""
    if (meter := _METER.get()) is not None:
        meter.append(tally)


def total(tallies: Iterable[Tally]) -> Tally:
    """Their sum."""
    return Tally(*map(sum, zip(Tally(), *tallies, strict=True)))


def spent(store: Store, home: str) -> Tally:
    """What the logs of a stage's shards say; shards whose log cannot be read count as nothing."""
    return total(map(tally_in, read_logs(store, home).values()))


def read_logs(store: Store, home: str, numbers: Iterable[int] | None = None) -> dict[int, dict[str, Any]]:
    """The logs of some shards of a stage, of all when None; empty where one cannot be read."""
    if numbers is None:
        names = store.listing(layout.meta(home, "log"))
        numbers = [number for name in names if (number := layout.shard_number(name, "json")) >= 0]
    numbers = list(numbers)
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return dict(zip(numbers, pool.map(lambda number: _log(store, layout.log(home, number)), numbers), strict=True))


def _log(store: Store, path: str) -> dict[str, Any]:
    try:
        log = json.loads(store.read(path))
        return log if isinstance(log, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def tally_in(log: Mapping[str, Any]) -> Tally:
    """What language models took for a shard, by its log; nothing where that says no such numbers."""
    tally = Tally(*(log.get(name, 0) for name in Tally._fields))
    return tally if all(isinstance(number, int) and 0 <= number < MOST for number in tally) else Tally()
