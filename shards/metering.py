"""What language models take for a shard: counted while it is made, kept in its log, and in nothing that is hashed.

Answers that were kept on disk count like new ones: the numbers say what a stage takes, however often it was resumed.
"""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

from twinset.manifests.tally import Tally
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

PARALLEL_READS = 16  # logs are small: on an object store their latency is what costs
_METER: ContextVar[list[Tally] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[list[Tally]]:
    """Collects what `count` is told by this thread while it is entered."""
    found = list[Tally]()
    before = _METER.set(found)
    try:
        yield found
    finally:
        _METER.reset(before)


def count(tally: Tally) -> None:
    """Count answers for the shard that is being made."""
    if (meter := _METER.get()) is not None:
        meter.append(tally)


def total(tallies: Iterable[Tally]) -> Tally:
    """Their sum."""
    found = Tally()
    for one in tallies:
        found = found.plus(one)
    return found


def spent(store: Store, home: str) -> Tally:
    """What the logs of a stage's shards say; shards whose log cannot be read count as nothing."""
    names = [name for name in store.listing(layout.meta(home, "log")) if layout.shard_number(name, "json") >= 0]
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return total(pool.map(lambda name: _logged(store, layout.meta(home, f"log/{name}")), names))


def _logged(store: Store, path: str) -> Tally:
    try:
        log = json.loads(store.read(path))
        return Tally(**{name: int(log.get(name, 0)) for name in Tally._fields})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return Tally()
