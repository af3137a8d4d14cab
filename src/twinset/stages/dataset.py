"""The end of a dataset: duplicates among its subsets are taken out, and it is described.

One of all samples with the same images and captions stays. What lies beside the tars is recorded with its sha256 and
with the shards that it describes.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Annotated, Any, cast

import numpy as np
import polars as pl
from pydantic import Field

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.receipt import Made, Model, Receipt, Word, parsed
from twinset.contracts.recipe import Recipe
from twinset.shards.plan import read_parquet
from twinset.shards.records import read_index_record, subsets_in
from twinset.shards.rows import DUPLICATE, REJECTED, TarWriter, read_rows, write_rows
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import read_members
from twinset.stages.finish import (
    DESCRIBED,
    INDEX,
    ROUNDS,
    MakeShards,
    Progress,
    forget,
    is_indexed,
    receipts_digest,
    settle,
    summarise,
)
from twinset.stages.job import MISSING_REASONS, OTHER_VERSION, Job, StageState, job_of, state_of
from twinset.stages.make import finish_shard

logger = logging.getLogger("twinset")

_COMPARED = ["content", "identity", "key"]
#: What builds write beside the tars. Other names in the record lead elsewhere; other files there are not the build's.
_NAME = r"^(log/)?[A-Za-z0-9][A-Za-z0-9_-]{0,80}(\.[a-z0-9]{1,10}){1,2}$"
CARDS_VERSION = 18  # raised when what `cards` writes changes; then all are written again


def finish_dataset(
    job: Job, make_shards: MakeShards, progress: Progress, unfinished: Collection[str] = ()
) -> dict[str, Any]:
    """What needs all stages: missing media, duplicates among subsets, and what the dataset says of itself.

    unfinished: the stages that wait for people, and those that read them, without which the others are finished.
    """
    for name, state in job.settled.items():
        if problem := missing_problem(job.recipe, name, state):
            raise BuildFailed(f"{name}: {problem}")
    if not unfinished or any(name in job.settled for name in job.recipe.subsets):
        published = _published(job)
        if not _is_described(job.store, published):
            progress.phase("dataset", "looking for duplicates")
            published |= _take_out_duplicates(job, published, make_shards, progress)
            progress.phase("dataset", "describing")
            _describe(job, published)
        progress.phase("dataset", "")
    counts = {name: job.settled[name].counts() for name in job.recipe.all if name in job.settled}
    made = {"subsets": {name: counts[name] for name in job.recipe.subsets if name in counts}}
    return made if job.recipe.subsets else {**made, "stages": counts}


def missing_problem(recipe: Recipe, name: str, state: StageState) -> str:
    """What to do when more media of a stage are missing, broken or out of reach than the recipe allows; else empty."""
    missing, planned, source = state.missing_media(), state.stage.planned, recipe[name].source
    if missing <= recipe.max_missing * planned:
        return ""
    media = next((str(path) for _, place, path in source.places() if place.need == "media"), source.planned_from)
    files, reasons = sorted(state.missing_files()), state.rejected()
    counts = ", ".join(f"{reasons[reason]:,} {reason}" for reason in MISSING_REASONS if reason in reasons)
    listed = ", which twinset status OUT --missing FILE lists"  # it names none that would lie elsewhere
    named = f": {len(files):,} file{'s' * (len(files) != 1)}, such as {files[0]}{listed}" if files else ""
    return (
        f"media of {missing} of {planned} candidates is missing, broken or out of reach of {media} ({counts}){named}; "
        f"max_missing is {recipe.max_missing:.2%}. Correct {recipe.key(name)}.source, or what it reads, or raise "
        "max_missing (--set max_missing=0.2), and run the same command again: shards that lacked nothing stay"
    )


def is_finished(job: Job) -> bool:
    """Whether `finish_dataset` has nothing to do, where the shards of all stages of the recipe are made."""
    indexed = all(is_indexed(job.store, state) for state in job.settled.values())
    return indexed and _is_described(job.store, _published(job))


def _published(job: Job) -> dict[str, StageState]:
    """All finished subsets below OUT by home, those of earlier builds too."""
    published = {}
    for home in subsets_in(job.store):
        try:
            own = job.settled.get(home) if home in job.recipe.subsets else None
            state = own or state_of(job.store, home)
        except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
            logger.warning("%s is left as it is: %s", home, error)
            continue
        if not state.todo:
            published[home] = state
        elif OTHER_VERSION in state.stale.values():
            logger.warning("left as they are, %s; run their builds again: %s", OTHER_VERSION, home)
    return published


def _take_out_duplicates(
    job: Job, published: Mapping[str, StageState], make_shards: MakeShards, progress: Progress
) -> dict[str, StageState]:
    """Drop duplicates and bring the indices of the subsets that changed up to date; returns all but tables."""

    def settle_again(home: str) -> StageState:
        owner, name = (job, home) if home in job.recipe.subsets else job_of(job.store, home)
        if name not in owner.settled:  # planned by another build, maybe with other libraries
            owner.worker(name).refuse_other_versions(states[home].stage)
        return settle(owner, name, make_shards, progress)

    states = {home: state for home, state in published.items() if state.makes != "table"}
    for home, state in states.items():
        if not is_indexed(job.store, state, hashed=True):  # of another build that was killed, or it was damaged since
            job.store.remove(layout.meta(home, "index.json"))
            states[home] = settle_again(home)
    for _ in range(ROUNDS):
        changed, again = drop_duplicates(job.store, states)
        for home in {*changed, *again}:
            forget(job.store, home, again.get(home, ()))
            states[home] = settle_again(home)
        if not again:
            return states
    raise BuildFailed(f"duplicates in {', '.join(sorted(again))} change with every look; run the same build again")


def _describe(job: Job, published: Mapping[str, StageState]) -> None:
    """Write the cards of subsets, their pictures, the page and the card of all."""
    from twinset.cards.describe import describe  # it plots
    from twinset.cards.kinds import CARD_KINDS
    from twinset.cards.page import write_look
    from twinset.cards.publication import write_overview

    for home, state in published.items():
        if not _has_card(job.store, home, state):
            describe(job.store, home, summarise(job.store, state))
    in_order = sorted(published, key=[*job.recipe.subsets, *published].index)  # the recipe's, then earlier builds'
    if sampled := [home for home in in_order if published[home].makes in CARD_KINDS]:
        write_look(job.store, sampled)
    write_overview(job.store, in_order)  # it shows the pictures that are there
    for home, state in published.items():
        _keep_description(job.store, home, state, published)


def drop_duplicates(store: Store, states: Mapping[str, StageState]) -> tuple[set[str], dict[str, list[int]]]:
    """Keep one of all samples, of any subset, with the same images and captions: that of the smallest source identity.

    The choice depends on the samples alone, and on names of subsets only where two hold the very same record of one
    kind of source. Tars with a duplicate are written again without it.

    states: of stages whose index is current (`stages.finish.is_indexed`). Returns the subsets of which a shard changed;
    and by subset the shards to be made again, whose tar lacks a sample that was a duplicate of one that is gone since.
    """
    expected = _duplicates(store, states)
    changed, again = set[str](), dict[str, list[int]]()
    for home, state in states.items():
        before = {number for number, duplicates in state.done.columns("duplicates") if duplicates != "{}"}
        for number in sorted(before | {shard for of, shard in expected if of == home}):
            receipt, drop = state.done[number], expected.get((home, number), {})
            if drop == receipt.duplicates:
                continue
            if drop.keys() >= receipt.duplicates.keys():
                _without(store, home, receipt, drop)
                changed.add(home)
            else:
                again.setdefault(home, []).append(number)
    return changed, again


def _duplicates(store: Store, states: Mapping[str, StageState]) -> dict[tuple[str, int], dict[str, str]]:
    """By home and shard: key of each duplicate, and key of the sample that stays."""
    tables = list[pl.DataFrame]()
    for home, state in states.items():
        # The index has the rows that were kept, shard after shard: reading it costs no look at each shard.
        kept = _columns(store, layout.meta(home, INDEX), _COMPARED)
        rows = [kept.with_columns(shard=np.repeat(np.array([*state.done], np.int64), state.done.column("kept")))]
        for number, duplicates in state.done.columns("duplicates"):
            if duplicates != "{}":
                judged = _columns(store, layout.rows(home, number), [*_COMPARED, "reason"])
                dropped = judged.filter(pl.col("reason") == DUPLICATE).select(_COMPARED)
                rows.append(dropped.with_columns(shard=pl.lit(number, pl.Int64)))
        source = pl.lit(state.stage.facts["generator"]["kind"])
        tables.append(pl.concat(rows).with_columns(home=pl.lit(home), source=source))
    drop = defaultdict[tuple[str, int], dict[str, str]](dict)
    if tables:
        same = pl.concat(tables).filter(pl.col("content").is_duplicated())
        same = same.sort("content", "source", "identity", "home", "key")
        same = same.with_columns(stays=pl.col("key").first().over("content"))
        for row in same.filter(~pl.col("content").is_first_distinct()).iter_rows(named=True):
            drop[row["home"], row["shard"]][row["key"]] = row["stays"]
    return drop


def _columns(store: Store, path: str, columns: list[str]) -> pl.DataFrame:
    with store.open(path) as stream:
        return cast(pl.DataFrame, pl.from_arrow(read_parquet(stream, columns)))


def _without(store: Store, home: str, receipt: Receipt, drop: Mapping[str, str]) -> None:
    """Write a shard again without some of its samples."""
    place = layout.rows(home, receipt.shard)
    with store.open(place) as stream:
        rows = read_rows(stream, f"{store.root}/{place}")
    for row in rows:
        if row.key in drop:
            row.verdict, row.filter, row.reason = REJECTED, "duplicates", DUPLICATE
            row.detail = f"same as {drop[row.key]}"
    path = layout.tar(home, receipt.split, receipt.shard)
    with store.spool() as spool:
        write_rows(rows, spool / "rows")
        with TarWriter(spool / "tar") as tar:
            # Without a tar all were dropped before, and only the names of their twins change.
            if receipt.tar_size:
                with store.open(path) as stream:
                    for name, content in read_members(stream, path):
                        if name.partition(".")[0] not in drop:
                            tar.add(name, content)
        known = receipt.model_dump(include={*Made.model_fields})
        known |= {"tar_sha256": tar.sha256, "tar_size": tar.size, "duplicates": dict(drop)}
        finish_shard(store, home, [(row.verdict, row.reason) for row in rows], spool, receipt, Made(**known))


class _Description(Model):
    """What lies beside the tars of a subset.

    shards: digest of those that it describes. page: digest of all subsets on the page that was written with it. files:
    sha256 by name.
    """

    shards: Word = ""
    page: Word = ""
    files: dict[Annotated[str, Field(pattern=_NAME)], Word] = Field(default={})


def _is_described(store: Store, published: Mapping[str, StageState]) -> bool:
    """Whether what lies beside the tars was written for these very shards, and is still there.

    When a recipe changes, so that cards say other things, the record is removed (`stages.plan.prepare`).
    """
    page = _digest(published)
    cards = all(_has_card(store, home, state, page) for home, state in published.items())
    return cards and not (published and store.size("README.md") is None)


def _has_card(store: Store, home: str, state: StageState, page: str = "") -> bool:
    """As `_is_described`, of a subset's own description. page: digest of what the page with it shows; empty for any."""
    record = _recorded(store, home)
    if record.shards != _digest({home: state}) or page not in ("", record.page):
        return False
    return record.files.keys() <= {*_beside(store, home)} and bool(store.size(f"{home}/README.md"))


def _keep_description(store: Store, home: str, state: StageState, shown: Mapping[str, StageState]) -> None:
    """Record that the files beside the tars of a subset describe its shards. shown: on the page."""
    index = read_index_record(store, home)
    vouched = () if index is None else index.files
    names = [name for name in _beside(store, home) if name not in vouched]
    files = {name: store.sha256(layout.meta(home, name))[0] for name in names}
    record = _Description(shards=_digest({home: state}), page=_digest(shown), files=files)
    store.write(layout.meta(home, DESCRIBED), record.to_bytes())


def changed_descriptions(store: Store, home: str) -> list[str]:
    """Paths of files beside the tars that are not those the build left; the card is a person's to edit."""
    files = {layout.meta(home, name): sha256 for name, sha256 in _recorded(store, home).files.items()}
    return [path for path, sha256 in files.items() if store.size(path) is None or store.sha256(path)[0] != sha256]


def _digest(published: Mapping[str, StageState]) -> str:
    subsets = {home: [state.stage.content, receipts_digest(state.done)] for home, state in sorted(published.items())}
    return digest([CARDS_VERSION, subsets])


def _beside(store: Store, home: str) -> list[str]:
    """Names in ``_meta`` of the recipe and what describes a subset, but for contact sheets that somebody asked for."""
    names = [name for name in sorted(store.listing(f"{home}/{layout.META}")) if re.fullmatch(_NAME, name)]
    recipe = [] if store.size(layout.recipe(home)) is None else [layout.RECIPE]
    return [*recipe, *(name for name in names if not name.startswith("look-"))]


def _recorded(store: Store, home: str) -> _Description:
    """The record; an empty one where it is absent or damaged."""
    try:
        return parsed(_Description, store.read(layout.meta(home, DESCRIBED))) or _Description()
    except FileNotFoundError:
        return _Description()
