"""What a stage takes, estimated from its own finished shards or those of another dataset.

The median of the shards' times counts. Planning, hashing and describing come on top; next to making shards they are
little.
"""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

from twinset.contracts.recipe import content_of
from twinset.models.engines import metered_engine
from twinset.shards.metering import Tally, read_logs, tally_in, total
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.status import StageState, state_of

LOGS = (256, 16)  # that are read, of shards evenly spread, and from an object store, where each is a request


def estimated(
    job: Job, name: str, planned: int, shards: int, own: StageState | None, like: Store | None
) -> dict[str, Any] | None:
    """What all of a stage takes; None where nothing tells it.

    Args:
        planned: candidates. shards: of them.
        own: its state below OUT.
        like: another dataset, whose stage of this name and kind is looked at where ``own`` has no shards.

    Returns:
        ``candidates``, ``shards``, ``samples``, ``bytes``, ``seconds`` of cores or of a GPU (``gpu``), of language
        models ``answers``, ``prompt_tokens``, ``completion_tokens`` and ``cost``, None without prices; ``from``: which
        shards tell it.
    """
    store, state, origin = job.store, own, job.store.root
    if (state is None or not state.done) and like is not None:
        state, origin = _like(job, name, like)
        store = like
    if state is None or not (logs := _logs(store, state)):
        return None
    finished = dict(state.done.columns("planned"))
    candidates, logged = sum(finished.values()), sum(finished[number] for number in logs)
    written = sum(state.done.column("tar_size")) + sum(state.done.column("rows_size"))
    tally = Tally(*(round(count * planned / logged) for count in total(map(tally_in, logs.values()))))
    return {
        "candidates": planned,
        "shards": shards,
        "samples": round(state.kept * planned / candidates),
        "bytes": round(written * planned / candidates),
        "seconds": planned * median(log["seconds"] / finished[number] for number, log in logs.items()),
        "gpu": any(log.get("gpu") is True for log in logs.values()),
        **tally._asdict(),
        "cost": engine.cost(tally) if (engine := metered_engine(job.recipe[name].source)) else None,
        "from": f"{candidates:,} candidates in {origin}",
    }


def _logs(store: Store, state: StageState) -> Mapping[int, Mapping[str, Any]]:
    """The logs of some finished shards that say how long they took."""
    done = list(state.done)
    most = min(LOGS[store.is_remote], len(done))
    logs = read_logs(store, state.home, [done[place * len(done) // most] for place in range(most)])
    return {
        number: log for number, log in logs.items() if isinstance(s := log.get("seconds"), float) and 0 <= s < math.inf
    }


def _like(job: Job, name: str, like: Store) -> tuple[StageState | None, str]:
    """The stage of this name and kind in another dataset, and where it is, with the settings that differ."""
    for home in stages_in(like):
        if home.rsplit("/", 1)[-1] == name:
            state = state_of(like, home)
            there = state.stage.facts["settings"]["source"]
            asked = content_of(job.recipe[name], job.recipe.seed)["source"]
            if there["kind"] == asked["kind"]:
                differ = sorted(key for key in {**there, **asked} if there.get(key) != asked.get(key))
                return state, like.root + (f", with other settings ({', '.join(differ)})" if differ else "")
    return None, ""
