"""Planning a stage: its candidates as Parquet, and the record that vouches for them."""

import fnmatch
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa

from twinset.cards.lineage import counted
from twinset.cards.terms import TermCounts
from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse, in_words
from twinset.contracts.plan import Ids, PlannedShard, PlanSummary, plan_digest, plan_file, shards_of, write_plan
from twinset.contracts.source import SOURCES
from twinset.contracts.stage import Stage
from twinset.shards.contracts import TableStage
from twinset.shards.records import read_planned, read_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.index import is_indexed, write_table_record
from twinset.stages.job import Job, StageWorker
from twinset.stages.status import state_of
from twinset.stages.table import INDEX, REJECTIONS, SIZES, compute, write_table


class PlanCheck:
    """Watches candidates go by and holds 8 bytes of a hash for each key, and for each group of several candidates.

    kinds: candidates by what they are counted as (`Candidate.counted_as`). terms: by licence and the first letter of
    the credit.
    """

    def __init__(self) -> None:
        self.kinds, self.terms = Counter[str](), Counter[tuple[str, str]]()
        self._keys, self._groups = Ids(), Ids()

    def watch(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        """The same candidates."""
        before: tuple[str, str] | None = None
        for candidate in candidates:
            self._keys.add(candidate.key)
            self.terms[candidate.licence, candidate.credit[:1]] += 1
            if candidate.counted_as:
                self.kinds[candidate.counted_as] += 1
            group = candidate.split, candidate.group
            # A group that is named like its only candidate is told apart by its key.
            if group != before and candidate.group != candidate.key:
                self._groups.add("\0".join(group))
            before = group
            yield candidate

    def finish(self, origin: str, again: Callable[[], Iterator[Candidate]]) -> None:
        """Raise `WrongUse` when a key is repeated or a group is interrupted.

        Args:
            origin: what messages name, such as the annotation file.
            again: the same candidates from the start, to name those at fault: equal hashes are no proof.
        """
        keys, groups = self._keys.suspects(), self._groups.suspects()
        if not keys and not groups:
            return
        left: set[tuple[str, str]] = set()
        before: tuple[str, str] | None = None
        for candidate in again():
            group = candidate.split, candidate.group
            if (first := keys.place_before(candidate.key, candidate.group)) is not None:
                raise WrongUse(
                    f"{origin}: {candidate.key} is planned twice, in group {first} and in group {candidate.group}; "
                    "correct the annotation, which repeats a source identity"
                )
            if group != before and group in left:
                raise WrongUse(
                    f"{origin}: the candidates of group {candidate.group} do not follow each other ({candidate.key} "
                    "comes after another group); a source must plan a group in one piece: sort what it reads by group"
                )
            if before is not None and group != before and "\0".join(before) in groups:
                left.add(before)
            before = group


logger = logging.getLogger("twinset")

#: Which shards the card describes; without it the card is written again.
DESCRIBED = "log/described.json"
#: What describes the shards of a plan, and is removed when they are planned again; with all pictures, ``*.png``.
DESCRIPTIONS = ("index.json", "index.parquet", "rejections.parquet", "flagged.parquet", "sizes.json", "croissant.json")


def count_plan(worker: StageWorker, store: Store) -> tuple[dict[str, Any], TermCounts]:
    """Plan a stage without writing anything: its counts, what planning left out, and under which terms samples are."""
    if isinstance(worker.generator, TableStage):
        rows, left_out = compute(worker, store), worker.generator.excluded
        counts = {"planned": rows.height, "kept": 0, "rejected": {}, "shards": 0, "kinds": {}}
        counts |= {"excluded": dict(sorted((+left_out).items())), "examples": left_out.examples}
        return counts, {}
    origin, check = worker.source.planned_from, PlanCheck()
    shards = shards_of(check.watch(_candidates(worker)), worker.subset.shard_size, origin)
    sizes = [len(shard) for shard in shards]
    check.finish(origin, lambda: _candidates(worker))
    counts = {"planned": sum(sizes), "kept": 0, "rejected": {}, "shards": len(sizes)}
    left_out = worker.generator.excluded
    counts["kinds"] = dict(check.kinds)
    counts |= {"excluded": dict(sorted((+left_out).items())), "examples": left_out.examples}
    return counts, check.terms


def planned_terms(store: Store, home: str, planned: Iterable[PlannedShard]) -> TermCounts:
    """Under which terms the candidates of a written plan are."""
    found = Counter[tuple[str, str]]()
    for file in dict.fromkeys(plan_file(shard.shard)[0] for shard in planned):
        with suppress(OSError, pa.ArrowException):  # said when its shards are made
            for row in counted(store, layout.plan(home, file), ["licence", "credit"]):
                found[row["licence"], row["credit"][:1]] += row["count_all"]
    return found


def prepare(job: Job, name: str) -> Stage:
    """Plan a stage below OUT, unless the plan that lies there is of this very recipe, inputs and versions."""
    store, worker = job.store, job.worker(name)
    facts = worker.facts(worker.generator.inputs())
    content = digest(facts)
    is_table = isinstance(worker.generator, TableStage)
    before = _table_before(store, worker.home) if is_table else _planned_before(store, worker.home)
    # Of this stage and of those that it reads, as workers and later builds read it.
    recorded = job.recipe.only([name]).model_dump_json(indent=1).encode()
    if before is not None and _holds(before, worker, content):
        _record(store, worker.home, layout.recipe(worker.home), recorded)
        return before
    if before is not None and before.content != content:
        logger.warning(
            "%s: the recipe, its inputs or a version changed; it is planned again, %s, and the card, README.md, is "
            "removed until the build ends",
            name,
            _made_again(len(store.names(layout.meta(worker.home, "receipts")))),
        )
    elif before is not None and before.count != worker.subset.count:
        logger.warning(
            "%s: %s candidates are asked for instead of %s; shards with the same candidates stay, and the card, "
            "README.md, is removed until the build ends",
            name,
            *(f"{count:,}" if count is not None else "all" for count in (worker.subset.count, before.count)),
        )
    for one in job.recipe.reads(name):
        job.earlier(one).check_whole()
    summary, kinds = _compute_table(store, worker) if is_table else _write_plan(store, worker, content)
    stage = Stage(
        name=name,
        facts=facts,
        content=content,
        plan=summary.digest,
        count=worker.subset.count,
        plan_inputs=worker.generator.plan_inputs(),
        planned=summary.planned,
        shards=len(summary.shards),
        kinds=kinds,
        excluded=dict(sorted((+worker.generator.excluded).items())),
        examples=worker.generator.excluded.examples,
    )
    _record(store, worker.home, layout.recipe(worker.home), recorded)
    # Last: what has a stage record can be resumed, whatever dies in between.
    _record(store, worker.home, layout.meta(worker.home, "stage.json"), stage.to_bytes())
    if is_table:
        write_table_record(store, state_of(store, worker.home))
    return stage


def is_planned(job: Job, name: str) -> bool:
    """Whether `prepare` would leave the plan of a stage as it lies below OUT."""
    worker = job.worker(name)
    is_table = isinstance(worker.generator, TableStage)
    before = _table_before(job.store, worker.home) if is_table else _planned_before(job.store, worker.home)
    return before is not None and _holds(before, worker, digest(worker.facts(worker.generator.inputs())))


def _holds(before: Stage, worker: StageWorker, content: str) -> bool:
    asked = (content, worker.subset.count, worker.generator.plan_inputs())
    return (before.content, before.count, before.plan_inputs) == asked


def _record(store: Store, home: str, place: str, content: bytes) -> None:
    """Write a record of a stage unless it is there already; what describes the stage is then of another record."""
    if store.size(place) != len(content) or store.read(place) != content:
        store.remove(layout.meta(home, DESCRIBED))
        store.write(place, content)


def _made_again(shards: int) -> str:
    """What becomes of the finished shards of an earlier plan."""
    if not shards:
        return "none of its shards was finished"
    return f"its {shards:,} finished shard{'' if shards == 1 else 's'} will be made again"


def _candidates(worker: StageWorker) -> Iterator[Candidate]:
    """Raises `WrongUse` where annotations alone are read, and give none."""
    source, candidate = worker.source, None
    worker.generator.excluded.clear()
    try:
        for candidate in islice(worker.generator.plan(), worker.subset.count):
            yield candidate
        if candidate is None and worker.subset.count != 0 and not source.reads and source.planned_from != source.kind:
            left_out = worker.generator.excluded
            first = "".join(f", such as {at}: {source.reasons.get(why, why)}" for why, at in left_out.examples[:1])
            raise WrongUse(
                f"{source.planned_from}: nothing in it can be used ({left_out.total():,} left out{first}); correct it, "
                f"or name another in the source of {worker.name}"
            )
    except (TwinsetError, OSError):
        raise
    except Exception as error:
        named = SOURCES.named(worker.source.kind)
        raise BuildFailed(
            f"{worker.name}: plan() of {named} failed: {in_words(error)}; correct the source or its "
            "input (--verbose shows the traceback)"
        ) from error


def _table_before(store: Store, home: str) -> Stage | None:
    """The record of a stage without shards, if its index is whole; else the table is computed again."""
    try:
        state = state_of(store, home)
    except (TwinsetError, FileNotFoundError, NotADirectoryError):
        return None
    return state.stage if state.is_one_table and is_indexed(store, state) else None


def _compute_table(store: Store, worker: StageWorker) -> tuple[PlanSummary, dict[str, int]]:
    """Compute the table of a stage without shards and move its files to their places; as `_write_plan`."""
    frame = compute(worker, store)
    with store.spool() as spool:
        found = write_table(worker, frame, spool)
        reports = worker.generator.report_files()
        store.remove(layout.meta(worker.home, "stage.json"))
        withdraw(store, worker.home, worker.source.reports)
        for name, report in reports.items():
            store.write(layout.meta(worker.home, name), report)
        store.move_in(spool / "shards.parquet", layout.plan(worker.home, "shards.parquet"))
        for name in (INDEX, REJECTIONS, SIZES):
            store.move_in(spool / name, layout.meta(worker.home, name))
    return PlanSummary(found, frame.height, ()), {}


def _planned_before(store: Store, home: str) -> Stage | None:
    """The stage record below OUT, if it and its list of shards are whole; else the stage is planned again."""
    try:
        stage = read_stage(store, home)
        if stage is None:
            return None
        shards = read_planned(store, home)
        counts = (sum(shard.planned for shard in shards), len(shards))
        if digest(stage.facts) != stage.content or counts != (stage.planned, stage.shards):
            problem = "its record does not agree with itself"
        elif plan_digest(shards) != stage.plan:
            problem = "its list of shards is not the plan's"
        else:
            return stage
    except (TwinsetError, FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    logger.warning("%s: planned again, %s", home, problem)
    return None


def _write_plan(store: Store, worker: StageWorker, content: str) -> tuple[PlanSummary, dict[str, int]]:
    """Write the candidates; nothing below OUT changes before all of them are in the spool and have been checked.

    Returns:
        The summary, and candidates by what they are counted as.
    """
    origin, check = worker.source.planned_from, PlanCheck()
    with store.spool() as spool:
        candidates = check.watch(_candidates(worker))
        summary = write_plan(candidates, worker.generator.candidate, worker.subset.shard_size, spool, origin)
        check.finish(origin, lambda: _candidates(worker))
        now, planned = _planned_before(store, worker.home), (content, worker.subset.count, summary.digest)
        if now is not None and (now.content, now.count, now.plan) == planned:
            return summary, dict(check.kinds)  # another build of the same planned it meanwhile, and may read it
        reports = worker.generator.report_files()
        # Until the new stage record is written, the old one must not vouch for new candidates.
        store.remove(layout.meta(worker.home, "stage.json"))
        withdraw(store, worker.home, worker.source.reports)
        for name, report in reports.items():
            store.write(layout.meta(worker.home, name), report)
        for file in [*dict.fromkeys(plan_file(shard.shard)[0] for shard in summary.shards), "shards.parquet"]:
            store.move_in(spool / file, layout.plan(worker.home, file))
    return summary, dict(check.kinds)


def withdraw(store: Store, home: str, reports: tuple[str, ...]) -> None:
    """Remove the descriptions of a stage that is planned again: they describe stale shards."""
    pictures = fnmatch.filter(store.names(f"{home}/{layout.META}"), "*.png")
    for path in (f"{home}/README.md", *(layout.meta(home, name) for name in (*DESCRIPTIONS, *reports, *pictures))):
        store.remove(path)
