"""Planning a stage: its candidates as Parquet, and the record that vouches for them."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from twinset.cards.terms import lacking
from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse, in_words
from twinset.contracts.source import SOURCES
from twinset.contracts.stage import Stage
from twinset.shards.contracts import TableStage
from twinset.shards.plan import PlannedShard, PlanSummary, plan_digest, write_plan
from twinset.shards.records import read_planned, read_stage
from twinset.shards.storage import layout
from twinset.shards.storage.spool import temporary_folder
from twinset.shards.storage.store import Store
from twinset.stages.finish import DESCRIBED, INDEX_FILES, is_indexed, write_table_record
from twinset.stages.job import Job, StageWorker, state_of
from twinset.stages.table import compute, write_table

logger = logging.getLogger("twinset")

#: What describes the shards of a plan, and is removed when they are planned again; with all pictures, ``*.png``.
DESCRIPTIONS = ("index.json", "croissant.json", *INDEX_FILES)


def count_plan(worker: StageWorker, store: Store) -> dict[str, Any]:
    """Plan a stage without writing below OUT: its counts, and what was left out."""
    kinds = dict[str, int]()
    if isinstance(worker.source, TableStage):
        planned, shards = compute(worker, store).height, 0
    else:
        with temporary_folder() as folder:
            summary, kinds = _write_candidates(worker, folder)
        planned, shards = summary.planned, len(summary.shards)
    return {"planned": planned, "kept": 0, "rejected": {}, "shards": shards, "kinds": kinds, **_left_out(worker)}


def prepare(job: Job, name: str) -> Stage:
    """Plan a stage below OUT, unless the plan that lies there is of this very recipe, inputs and versions."""
    store, worker = job.store, job.worker(name)
    home, source = worker.home, worker.source
    facts = worker.facts(source.inputs())
    content = digest(facts)
    before = _planned_before(store, worker)
    if before is not None and _holds(before, worker, content):
        record_recipe(job, name)
        return before
    for earlier in job.recipe.reads(name):
        job.earlier(earlier).check_whole()
    with store.spool() as spool:
        if isinstance(source, TableStage):
            summary, kinds = write_table(worker, compute(worker, store), spool), dict[str, int]()
        else:
            summary, kinds = _write_candidates(worker, spool)
        if before is not None and (before.content, before.count) != (content, worker.subset.count):
            changed = "the recipe, its inputs or a version changed"
            logger.warning("%s: planned again, %s; its card, README.md, is removed until the build ends", name, changed)
        _replace_plan(store, worker, spool)
    stage = Stage(
        name=name,
        facts=facts,
        content=content,
        plan=summary.digest,
        count=worker.subset.count,
        plan_inputs=source.plan_inputs(),
        planned=summary.planned,
        shards=len(summary.shards),
        kinds=kinds,
        **_left_out(worker),
    )
    record_recipe(job, name)
    # Last: what has a stage record can be resumed, whatever dies in between.
    _record(store, home, layout.meta(home, "stage.json"), stage.to_bytes())
    if isinstance(source, TableStage):
        write_table_record(store, state_of(store, home))
    return stage


def record_recipe(job: Job, name: str) -> None:
    """Write the recipe of a stage, and of those that it reads, as workers and later builds read it."""
    home = job.recipe.home(name)
    _record(job.store, home, layout.recipe(home), job.recipe.only([name]).model_dump_json(indent=1).encode())


def is_planned(job: Job, name: str) -> bool:
    """Whether `prepare` would leave the plan of a stage as it lies below OUT."""
    worker = job.worker(name)
    before = _planned_before(job.store, worker)
    return before is not None and _holds(before, worker, digest(worker.facts(worker.source.inputs())))


def _holds(before: Stage, worker: StageWorker, content: str) -> bool:
    asked = (content, worker.subset.count, worker.source.plan_inputs())
    return (before.content, before.count, before.plan_inputs) == asked


def _record(store: Store, home: str, place: str, content: bytes) -> None:
    """Write a record of a stage unless it is there already; what describes the stage is then of another record."""
    if store.size(place) != len(content) or store.read(place) != content:
        store.remove(layout.meta(home, DESCRIBED))
        store.write(place, content)


def _left_out(worker: StageWorker) -> dict[str, Any]:
    """What planning left out, by reason, and the first of it."""
    left_out = worker.source.excluded
    return {"excluded": dict(sorted((+left_out).items())), "examples": left_out.examples}


def _planned_before(store: Store, worker: StageWorker) -> Stage | None:
    """The stage record below OUT, if it and its list of shards, or its table, are whole; else it is planned again."""
    home = worker.home
    try:
        stage = read_stage(store, home)
        if stage is None:
            return None
        if isinstance(worker.source, TableStage):
            state = state_of(store, home)
            return stage if state.is_one_table and is_indexed(store, state) else None
        if not (why := contradiction(stage, read_planned(store, home))):
            return stage
    except (TwinsetError, FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError) as error:
        why = str(error)
    logger.warning("%s: planned again, %s", home, why)
    return None


def contradiction(stage: Stage, planned: Sequence[PlannedShard]) -> str:
    """How a record contradicts itself or its shards, else empty; raises ValueError or TypeError for odd facts."""
    if digest(stage.facts) != stage.content:
        return "its digest is not that of its facts"
    counts = sum(shard.planned for shard in planned), len(planned)
    is_one_table = stage.facts["makes"] == "table" and not planned
    if not is_one_table and (plan_digest(planned), *counts) != (stage.plan, stage.planned, stage.shards):
        return "plan/shards.parquet is not the plan of stage.json"
    return ""


def _write_candidates(worker: StageWorker, folder: Path) -> tuple[PlanSummary, dict[str, int]]:
    """Write the candidates of a stage into a folder and check them; returns also candidates by `counted_as`."""
    origin, kinds, terms = worker.source.planned_from, Counter[str](), Counter[tuple[str, str]]()
    candidates = _candidates(worker, kinds, terms)
    summary = write_plan(candidates, worker.source.candidate, worker.subset.shard_size, folder, origin)
    check_plan(folder, summary, origin)
    if worker.name in worker.recipe.subsets and (lacks := lacking(worker.name, terms)):
        logger.warning("%s: twinset publish refuses it so", "; ".join(lacks))
    return summary, {kind: count for kind, count in kinds.items() if kind}


def _candidates(worker: StageWorker, kinds: Counter[str], terms: Counter[tuple[str, str]]) -> Iterator[Candidate]:
    """Raises `WrongUse` where annotations alone are read, and give none. kinds, terms: count them."""
    source = worker.source
    source.excluded.clear()
    try:
        for candidate in islice(source.plan(), worker.subset.count):
            kinds[candidate.counted_as] += 1
            terms[candidate.licence, candidate.credit[:1]] += 1
            yield candidate
        if not kinds and worker.subset.count != 0 and not source.reads and source.planned_from != source.kind:
            left_out = source.excluded
            first = "".join(f", such as {at}: {source.reasons.get(why, why)}" for why, at in left_out.examples[:1])
            raise WrongUse(
                f"{source.planned_from}: nothing in it can be used ({left_out.total():,} left out{first}); correct it, "
                f"or name another in the source of {worker.name}"
            )
    except (TwinsetError, OSError):
        raise
    except Exception as error:
        named = SOURCES.named(source.kind)
        raise BuildFailed(
            f"{worker.name}: plan() of {named} failed: {in_words(error)}; correct the source or its "
            "input (--verbose shows the traceback)"
        ) from error


def check_plan(folder: Path, summary: PlanSummary, origin: str) -> None:
    """Raise `WrongUse` where a key of a written plan is repeated, or a group lies in two places.

    origin: what messages name, such as the annotation file.
    """
    if not summary.shards:
        return
    files, group = sorted(folder.glob("[0-9]*.parquet")), pl.struct("split", "group")
    candidates = pl.read_parquet(files, glob=False, columns=["key", "split", "group"])
    repeated = candidates.filter(pl.col("key").is_duplicated())
    if repeated.height:
        key = repeated["key"][0]
        first, second = repeated.filter(pl.col("key") == key)["group"][:2]
        raise WrongUse(
            f"{origin}: {key} is planned twice, in group {first} and in group {second}; correct the annotation, which "
            "repeats a source identity"
        )
    shards = pl.Series("shard", np.repeat(np.arange(len(summary.shards)), [shard.planned for shard in summary.shards]))
    begins = candidates.with_columns(shards).filter(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in ("split", "group", "shard"))
    )
    apart = begins.filter(~group.is_first_distinct())
    if apart.height:
        late = apart.row(0, named=True)
        raise WrongUse(
            f"{origin}: the candidates of group {late['group']} do not follow each other ({late['key']} comes after "
            "another group); a source must plan a group in one piece: sort what it reads by group"
        )


def _replace_plan(store: Store, worker: StageWorker, spool: Path) -> None:
    """Move the files of a new plan to their places; nothing below OUT changed before all of them were checked."""
    home, reports = worker.home, worker.source.report_files()
    # Until the new stage record is written, the old one must not vouch for new candidates.
    store.remove(layout.meta(home, "stage.json"))
    pictures = [name for name in store.names(f"{home}/{layout.META}") if name.endswith(".png")]
    for name in (*DESCRIPTIONS, *worker.source.reports, *pictures):
        store.remove(layout.meta(home, name))
    store.remove(f"{home}/README.md")
    for name, report in reports.items():
        store.write(layout.meta(home, name), report)
    for path in sorted(spool.iterdir()):
        store.move_in(path, layout.meta(home, path.name) if path.name in INDEX_FILES else layout.plan(home, path.name))
