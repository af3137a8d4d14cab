"""What a stage takes, estimated from its own finished shards or those of another dataset.

The median of the shards' times counts. Planning, hashing and describing come on top; next to making shards they are
little.
"""

import math
from statistics import median
from typing import Any

from twinset.models.engines import metered_engine
from twinset.shards.metering import Tally, read_logs, tally_in, total
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.status import StageState, state_of

LOGS = 16  # that are read, of shards evenly spread: on an object store each is a request


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
    store, state, source = job.store, own, job.recipe[name].source
    if like is not None and (own is None or not own.done):
        homes = [home for home in stages_in(like) if home.rsplit("/", 1)[-1] == name]
        store, state = like, state_of(like, homes[0]) if homes else None
    if state is None or not state.done or state.stage.facts["generator"]["kind"] != source.kind:
        return None
    numbers = [*state.done][:: len(state.done) // LOGS + 1]
    logs = {n: log for n, log in read_logs(store, state.home, numbers).items() if _is_time(log.get("seconds"))}
    if not logs:
        return None
    finished = dict(state.done.columns("planned"))
    candidates, logged = sum(finished.values()), sum(finished[number] for number in logs)
    written = sum(state.done.column("tar_size")) + sum(state.done.column("rows_size"))
    engine = metered_engine(job.recipe[name].source)
    tally = Tally(*(round(count * planned / logged) for count in total(map(tally_in, logs.values()))))
    return {
        "candidates": planned,
        "shards": shards,
        "samples": round(state.kept * planned / candidates),
        "bytes": round(written * planned / candidates),
        "seconds": planned * median(log["seconds"] / finished[number] for number, log in logs.items()),
        "gpu": any(log.get("gpu") is True for log in logs.values()),
        **tally._asdict(),
        "cost": None if engine is None else engine.cost(tally),
        "from": f"{candidates:,} candidates in {store.root}",
    }


def _is_time(seconds: Any) -> bool:
    return isinstance(seconds, float) and 0 <= seconds < math.inf
