"""Media that a plan needs and that are not there: found before shards are made, counted, and listed by file."""

import csv
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.recipe import Recipe
from twinset.shards.media.media_folder import MediaFolder
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store
from twinset.stages.job import StageState, StageWorker, job_of, media_size, state_of
from twinset.stages.make import candidates_of

logger = logging.getLogger("twinset")

LOOKED_AT = 16  # shards of a plan, evenly spread


def nothing_there(store: Store, recipe: Recipe, name: str, state: StageState, worker: StageWorker) -> str:
    """What to do where not one of many media is there, so that a build would be in vain; else empty."""
    media = worker.source.media_files()
    if media is None or recipe.max_missing == 1:
        return ""
    spread = [shard.shard for shard in state.planned[:: len(state.planned) // LOOKED_AT + 1]]
    absent = dict[str, None]()
    for wanted in _wanted(store, state, worker, spread):
        if wanted not in absent and media_size(media, wanted) is not None:
            return ""
        absent[wanted] = None
    if not absent:
        return ""
    problem = f"none is in {media.root} or a folder below"
    why = media.absent(next(iter(absent)), problem) if isinstance(media, MediaFolder) else problem
    return (
        f"{name}: nothing is made, since media are absent: of {len(absent):,} that were looked for, such as "
        f"{', '.join([*absent][:3])}, {why}. Put them there, or correct {recipe.key(name)}.source, and run the "
        "same command again; twinset status OUT --missing FILE lists all"
    )


def missing_problem(recipe: Recipe, name: str, state: StageState) -> str:
    """What to do when more inputs of a stage are missing, broken or out of reach than the recipe allows; else empty."""
    missing, unsafe = state.missing_media(), state.rejected().get("unsafe-path", 0)
    planned, source = state.stage.planned, recipe[name].source
    media = next((str(path) for _, place, path in source.places() if place.need == "media"), source.planned_from)
    if unsafe > recipe.max_missing * planned:
        return (
            f"{name}: {unsafe} of {planned} candidates name media by paths that lead out of {media}; write them "
            "relative to it, and run the same command again"
        )
    if missing <= recipe.max_missing * planned:
        return ""
    files = sorted(state.missing_files())
    named = f"{len(files):,} file{'s' * (len(files) != 1)}, such as {', '.join(files[:1])}"
    return (
        f"{name}: media of {missing} of {planned} candidates is missing or broken: {named} in {media}; max_missing is "
        f"{recipe.max_missing:.2%}. twinset status OUT --missing FILE lists them. Correct {recipe.key(name)}.source or "
        "raise the recipe's max_missing (--set max_missing=0.2), and run the same command again: shards that lacked "
        "nothing stay"
    )


def write_missing(store: Store, file: Path) -> None:
    """Write a TSV of the files that stages below OUT lack: for the shards that are done as their receipts say.

    A stage that cannot be read is logged, and left out.
    """
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream, "excel-tab", lineterminator="\n")
            rows.writerow(("stage", "media", "state", "url"))
            for home in stages_in(store):
                try:
                    lacking = list(_missing_of(store, home))
                except (TwinsetError, OSError, ValueError, pa.ArrowException) as error:
                    problem = "its media are not listed, since it cannot be read"
                    logger.warning("%s/%s: %s: %s", store.root, home, problem, error)
                else:
                    rows.writerows(lacking)
    except OSError as error:
        raise WrongUse(f"{file}: cannot be written ({error.strerror}); name another file") from error


def _missing_of(store: Store, home: str) -> Iterator[tuple[str, str, str, str]]:
    job, name = job_of(store, home)
    worker = job.worker(name)
    if (media := worker.source.media_files()) is None:
        return
    state = state_of(store, home, media)
    lacking = {file: "absent" if size is None else "broken" for file, size in state.missing_files().items()}
    for wanted in _wanted(store, state, worker, state.todo):
        if wanted not in lacking and media_size(media, wanted) is None:
            lacking[wanted] = "absent"
    urls = dict[str, str]()
    if lacking:
        with suppress(TwinsetError):  # annotations may lie on another machine
            urls |= worker.source.media_urls()
    for file, problem in lacking.items():
        yield name, file, problem, urls.get(file, "")


def _wanted(store: Store, state: StageState, worker: StageWorker, shards: Iterable[int]) -> Iterator[str]:
    """Names of the media that the candidates of some shards need."""
    for shard in shards:
        for candidate in candidates_of(store, worker, state.stage.plan, shard):
            yield from worker.source.media_names(candidate)
