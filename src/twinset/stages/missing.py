"""Media that a plan needs and that are not there: found before shards are made, and listed by file."""

import csv
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.recipe import Recipe
from twinset.shards.media.media_folder import Media, MediaFolder
from twinset.shards.records import planned_stage, stages_in
from twinset.shards.storage.store import Store
from twinset.stages.job import StageWorker, job_of
from twinset.stages.making.make import candidates_of
from twinset.stages.status import StageState, state_of

logger = logging.getLogger("twinset")

T = TypeVar("T")
LOOKED_AT = 16  # shards of a plan, evenly spread, and candidates of each
EXAMPLES = 3
HEADER = ("stage", "media", "state", "url")


def nothing_there(store: Store, recipe: Recipe, name: str, state: StageState, worker: StageWorker) -> str:
    """What to do where not one of many media is there, so that a build would be in vain; else empty."""
    media = worker.source.media_files()
    if media is None or recipe.max_missing == 1:
        return ""
    absent = dict[str, None]()
    for shard in _spread(state.planned):
        for candidate in _spread(candidates_of(store, worker, state.stage.plan, shard.shard)):
            for wanted in worker.generator.media_names(candidate):
                try:
                    if media.size(wanted) is not None:
                        return ""
                except TwinsetError:  # a name that leads out of the folder: the shard's error says more
                    return ""
                absent[wanted] = None
    if not absent:
        return ""
    problem = f"none is in {media.root} or a folder below"
    why = media.absent(next(iter(absent)), problem) if isinstance(media, MediaFolder) else problem
    return (
        f"{name}: nothing is made, since media are absent: of {len(absent):,} that were looked for, such as "
        f"{', '.join([*absent][:EXAMPLES])}, {why}. Put them there, or correct {recipe.key(name)}.source, and run the "
        "same command again; twinset status OUT --missing FILE lists all"
    )


def write_missing(store: Store, file: Path) -> None:
    """Write a TSV of the files that stages below OUT lack: for the shards that are done as their receipts say.

    A stage that cannot be read is logged, and left out.
    """
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream, "excel-tab", lineterminator="\n")
            rows.writerow(HEADER)
            rows.writerows(_missing_media(store))
    except OSError as error:
        raise WrongUse(f"{file}: cannot be written ({error.strerror}); name another file") from error


def _missing_media(store: Store) -> Iterator[tuple[str, str, str, str]]:
    for home in stages_in(store):
        try:
            found = list(_missing_of(store, home))
        except (TwinsetError, OSError, ValueError, pa.ArrowException) as error:
            logger.warning("%s/%s: its media are not listed, since it cannot be read: %s", store.root, home, error)
        else:
            yield from found


def _missing_of(store: Store, home: str) -> Iterator[tuple[str, str, str, str]]:
    job, name = job_of(store, home)
    worker = job.worker(name)
    if (media := worker.source.media_files()) is None:
        return
    stage, state, urls = planned_stage(store, home), state_of(store, home, media), None
    lacking = {one: "absent" if size is None else "broken" for one, size in state.missing_files().items()}
    unmade = set(state.todo)
    for shard in state.planned:
        if shard.shard in unmade:
            names = map(worker.generator.media_names, candidates_of(store, worker, stage.plan, shard.shard))
            lacking |= dict.fromkeys((one for some in names for one in some if one not in lacking), "")
    for one, found in lacking.items():
        if found or not _is_there(media, one):
            urls = _urls(worker) if urls is None else urls
            yield name, one, found or "absent", urls.get(one, "")


def _spread(every: Sequence[T]) -> list[T]:
    most = min(LOOKED_AT, len(every))
    return [every[place * len(every) // most] for place in range(most)]


def _is_there(media: Media, name: str) -> bool:
    try:
        return media.size(name) is not None
    except TwinsetError:  # a name that leads out of the folder
        return False


def _urls(worker: StageWorker) -> dict[str, str]:
    with suppress(TwinsetError):  # annotations may lie on another machine
        return dict(worker.generator.media_urls())
    return {}
