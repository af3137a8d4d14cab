"""What stages cost: as receipts and logs tell it, and estimated from that, for what is still to be made.

Rates come from the stage's own shards, of whose times the median counts, else from another dataset, else from the
recipe's table. Planning, hashing and describing come on top; next to making shards they are little.
"""

import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, NamedTuple

from twinset.contracts.errors import TwinsetError
from twinset.contracts.recipe import Recipe, content_of
from twinset.contracts.recipe.models import Rate
from twinset.contracts.source import Tally
from twinset.shards.metering import read_logs, tally_in, total
from twinset.shards.records import stages_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.status import StageState, state_of

COST = "log/cost.json"
LOGS = (256, 16)  # that are read, of shards evenly spread, and from an object store, where each is a request


class Cost(NamedTuple):
    """What a stage takes. seconds: of cores, or of a GPU. cost: of language models, None without prices."""

    candidates: int
    shards: int
    samples: int
    bytes: int
    seconds: float
    gpu: bool
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Measured(NamedTuple):
    """Where rates come from, and what all finished shards of the stage took."""

    origin: str
    rate: Rate
    cost: Cost


def measured(store: Store, recipe: Recipe, name: str, home: str, state: StageState) -> Measured | None:
    """What the finished shards of a stage took; None where there is none, or no log says it.

    recipe: of the build; its prices count.
    """
    planned, done = dict(state.done.columns("planned")), list(state.done)
    most = min(LOGS[store.is_remote], len(done))
    chosen = [done[place * len(done) // most] for place in range(most)]
    logs = {
        number: log
        for number, log in read_logs(store, home, chosen).items()
        if isinstance(took := log.get("seconds"), float) and 0 <= took < math.inf
    }
    if not logs:
        return None
    gpu = any(log.get("gpu") is True for log in logs.values())
    took = {number: float(log["seconds"]) for number, log in logs.items()}
    candidates, looked_at = sum(planned.values()), sum(planned[number] for number in logs)
    written = sum(state.done.column("tar_size")) + sum(state.done.column("rows_size"))
    tally = total(map(tally_in, logs.values()))
    rate = Rate(
        kept=sum(state.done.column("kept")) / candidates,
        bytes=written / candidates,
        seconds=median(took[number] / planned[number] for number in logs),
        gpu=gpu,
        **{what: count / looked_at for what, count in tally._asdict().items()},
        each=_each(store, recipe, name, state),
    )
    cost = _cost(recipe, name, rate, candidates, len(done))
    cost = cost._replace(seconds=sum(took.values()) * candidates / looked_at)
    return Measured(f"{candidates:,} candidates in {store.root}", rate, cost)


def _each(store: Store, recipe: Recipe, name: str, state: StageState) -> float | None:
    """Candidates of a stage for each one that the first stage which it reads kept."""
    for read in recipe.reads(name)[:1]:
        with contextlib.suppress(TwinsetError, OSError):
            kept = state_of(store, recipe.home(read)).kept
            return state.stage.planned / kept if kept else None
    return None


def _cost(recipe: Recipe, name: str, rate: Rate, candidates: int, shards: int) -> Cost:
    tally = Tally(*(round(candidates * getattr(rate, what)) for what in Tally._fields))
    processes = min(shards, os.cpu_count() or 1)
    return Cost(
        candidates,
        shards,
        samples=round(candidates * rate.kept),
        bytes=round(candidates * rate.bytes),
        seconds=candidates * rate.seconds + processes * rate.start,
        gpu=rate.gpu,
        **tally._asdict(),
        cost=recipe[name].source.cost(tally),
    )


def estimated(
    job: Job,
    name: str,
    planned: int | None,
    shards: int | None,
    own: StageState | None = None,
    like: Store | None = None,
    before: Mapping[str, Mapping[str, Any] | None] | None = None,
) -> dict[str, Any] | None:
    """What all of a stage will take, from what ``rate`` and whose (``from``); None where nothing tells it.

    Args:
        planned: candidates; None where the stage waits for one that it reads. shards: of them.
        own: its state below OUT.
        like: another dataset, whose stage of this name and kind tells rates.
        before: estimates of the stages that it reads, by name.
    """
    recipe, rate, origin = job.recipe, None, ""
    found = None if own is None else measured(job.store, recipe, name, own.home, own)
    if found is None and like is not None:
        found = _of_another(like, recipe, name)
    if found is not None:
        rate, origin = found.rate, found.origin
    elif recipe.rates is not None and name in recipe.rates.stages:
        rate, origin = recipe.rates.stages[name], f"the recipe's rates, measured on {recipe.rates.machine}"
    if rate is None:
        return None
    if planned is None:
        read = (before or {}).get(recipe.reads(name)[0])
        if read is None or rate.each is None:
            return None
        planned = round(read["samples"] * rate.each)
        planned = min(planned, recipe[name].count or planned)
        shards = math.ceil(planned / recipe[name].shard_size)
    told = {"rate": rate.model_dump(exclude_defaults=True), "from": origin}
    return {**_cost(recipe, name, rate, planned, shards or 0)._asdict(), **told}


def _of_another(store: Store, recipe: Recipe, name: str) -> Measured | None:
    """What the stage of this name and kind took in another dataset; its origin says where its settings differ."""
    home = next((one for one in stages_in(store) if one.rsplit("/", 1)[-1] == name), None)
    if home is None:
        return None
    state = state_of(store, home)
    had, asked = state.stage.facts["settings"]["source"], content_of(recipe[name], recipe.seed)["source"]
    if had["kind"] != asked["kind"]:
        return None
    found = measured(store, recipe, name, home, state)
    differ = sorted(key for key in {**had, **asked} if had.get(key) != asked.get(key))
    if found is None or not differ:
        return found
    return found._replace(origin=f"{found.origin}, with other settings ({', '.join(differ)})")


def keep_estimate(job: Job, state: StageState, estimate: dict[str, Any] | None) -> None:
    """Write beside the logs of a planned stage its estimate, unless that of the same plan is there, and what this build
    is asked for.
    """
    record, before = {"content": state.stage.content, "planned": state.stage.planned}, read_cost(job.store, state.home)
    asked = {"asked": {job.recipe.home(name): job.recipe.reads(name) for name in job.recipe.all}}
    if not {**record, **asked}.items() <= before.items():
        kept = before if record.items() <= before.items() else record
        _write(job.store, state.home, {"estimated": estimate, **kept, **asked, "begun": time.time()})


def keep_measured(job: Job, name: str, state: StageState) -> None:
    """Write beside the estimate what the shards took, now that all are made."""
    if (found := measured(job.store, job.recipe, name, state.home, state)) is not None:
        record = read_cost(job.store, state.home)
        _write(job.store, state.home, {**record, "measured": found.cost._asdict(), "ended": time.time()})


def last_asked(store: Store, homes: Iterable[str]) -> dict[str, list[str]]:
    """The stages of the last build by home, each with the names of those that it reads; empty if no log says it."""
    records = [one for home in homes if isinstance((one := read_cost(store, home)).get("begun"), float)]
    asked = max(records, key=lambda one: one["begun"], default={}).get("asked")
    found = asked.items() if isinstance(asked, dict) else ()
    return {home: [*map(str, reads)] for home, reads in found if isinstance(reads, list)}


def read_cost(store: Store, home: str) -> dict[str, Any]:
    """What was estimated and measured of a stage: ``estimated``, ``measured``, when it ``ended``; else empty."""
    try:
        record = json.loads(store.read(layout.meta(home, COST)))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _write(store: Store, home: str, record: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # as any log: nothing depends on it
        store.write(layout.meta(home, COST), json.dumps(record).encode())
