"""Making one shard: a pure function of its candidates and its stage, finished by its receipt or not at all."""

import contextlib
import errno
import json
import logging
import os
import socket
import time
import traceback
from collections import Counter
from collections.abc import Collection, MutableSequence, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import BuildFailed, TwinsetError, in_words
from twinset.contracts.parts import OutOfMemory
from twinset.contracts.receipt import Made, Receipt
from twinset.contracts.stage import ANY_RUNTIME, Stage
from twinset.shards.metering import counting, metered, total
from twinset.shards.plan import PlannedShard, plan_digest, plan_file, read_footer, read_slice, slice_digest
from twinset.shards.records import planned_stage, read_planned, read_receipt, read_stage
from twinset.shards.rows import KEPT, REJECTED
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.job import StageWorker, refuse_mixed_runtimes, worker_of
from twinset.stages.making.payload import write_samples, write_table
from twinset.stages.status import receipt_holds

logger = logging.getLogger("twinset")

RETRIES = 3
#: A full disk or a wrong place does not mend by waiting.
HOPELESS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ETIMEDOUT),
)


def make_and_retry(
    root: str,
    home: str,
    number: int,
    worker: StageWorker | None = None,
    stage: Stage | None = None,
    counts: MutableSequence[int] | None = None,
) -> dict[str, Any]:
    """Make one shard, and try again when the network or a disk had trouble that may pass; returns its receipt.

    counts: where the number of its candidates that are made stands, by the number of the shard. Raises as `make_shard`,
    and of what else a source raises `BuildFailed`.
    """
    on_count = (lambda count: None) if counts is None else partial(counts.__setitem__, number)
    for attempt in range(RETRIES + 1):
        try:
            with counting(on_count):
                return make_shard(root, home, number, worker, stage).model_dump(mode="json")
        except OSError as error:
            if error.errno in HOPELESS or attempt == RETRIES:
                raise
        except TwinsetError:
            raise
        except (Exception, SystemExit) as error:
            # Others may not survive the way between processes, and their traceback does not.
            logger.info("%s shard %05d failed:\n%s", home, number, traceback.format_exc())
            raise BuildFailed(in_words(error)) from None
        time.sleep(2**attempt)
    raise AssertionError("the last attempt returns or raises")


def make_shard(
    root: str, home: str, number: int, worker: StageWorker | None = None, stage: Stage | None = None
) -> Receipt:
    """Make one shard of a planned stage. Everything is read from OUT: any worker can do it.

    worker, stage: of the build that planned the stage, where they are at hand. Raises `BuildFailed` where this machine
    would make other bytes, or the stage was planned again meanwhile; after an OSError no receipt exists.
    """
    store = Store(root)
    stage = stage or planned_stage(store, home)
    worker = worker or worker_of(store, home, stage)
    if worker.runtime != ANY_RUNTIME and number and not worker.recipe.allow_mixed_runtimes:
        # Found out before the work rather than after it; finalising looks at all receipts.
        first = read_receipt(store, home, 0)
        machines = {first.machine} if first is not None and first.content == stage.content else set()
        refuse_mixed_runtimes(f"{store.root}/{home}", {worker.runtime} | machines)
    planned = _planned(root, home, stage.plan)[number]
    return write_shard(store, stage, planned, candidates_of(store, worker, stage.plan, number), worker)


def candidates_of(store: Store, worker: StageWorker, plan: str, number: int) -> list[Candidate]:
    """The candidates of a shard. plan: the digest of its stage's plan."""
    file, row_group = plan_file(number)
    path = layout.plan(worker.home, file)
    try:
        with store.open(path) as stream:
            return read_slice(stream, row_group, worker.generator.candidate, _footer(store.root, path, plan))
    except (FileNotFoundError, IsADirectoryError, TypeError, pa.ArrowException) as error:
        remedy = f"remove {layout.meta(worker.home, 'stage.json')} and run the same build again"
        problem = f"{store.root}/{path}: not the candidates of shard {number:05d} ({error})"
        raise BuildFailed(f"{problem}; {remedy}") from error


@lru_cache(maxsize=4)
def _footer(root: str, path: str, _plan: str) -> Any:
    """The footer of a plan's file: of a thousand row groups it takes longer to read than a shard's rows."""
    with Store(root).open(path) as stream:
        return read_footer(stream)


@lru_cache(maxsize=8)
def _planned(root: str, home: str, plan: str) -> list[PlannedShard]:
    shards = read_planned(Store(root), home)
    if plan_digest(shards) != plan:
        raise BuildFailed(f"{root}/{home}: the stage was planned again meanwhile; run the build again")
    return shards


def write_shard(
    store: Store, stage: Stage, planned: PlannedShard, candidates: Sequence[Candidate], worker: StageWorker
) -> Receipt:
    """Make a shard and move tar, rows and receipt to their places, in this order; returns the receipt.

    When another worker has finished the shard meanwhile, its receipt is returned and nothing is written. Raises
    `BuildFailed` when the candidates are not those that were planned, or the stage was planned again meanwhile.
    """
    home, number, media = worker.home, planned.shard, worker.source.media_files()
    if slice_digest(candidates) != planned.slice:
        raise BuildFailed(
            f"{store.root}/{layout.plan(home, plan_file(number)[0])}: the candidates of shard {number:05d} are not "
            f"those of the plan; remove {layout.meta(home, 'stage.json')} and run the same build again"
        )
    began, clock = time.time(), time.monotonic()  # since 1970; one that nobody sets
    with metered() as tallies, store.spool() as spool:
        worker, tar, verdicts, missing = _write_payload(candidates, worker, spool, f"{home} shard {number:05d}")
        # A worker that was taken for dead may end hours later. What it made must not replace a shard from which
        # duplicates were taken since, nor one of a newer plan. A receipt that went stale, as when missing media
        # appeared, is replaced.
        now, before = read_stage(store, home), read_receipt(store, home, number)
        if now is None or (now.content, now.plan) != (stage.content, stage.plan):
            raise BuildFailed(
                f"{store.root}/{home}: shard {number:05d} is not written, because the stage was planned again "
                "meanwhile; run the build again"
            )
        if before is not None and receipt_holds(store, home, stage, planned, before, media):
            return before
        # Before the receipt: no kill leaves a finished shard of which it is not known how and where it was made.
        log: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "began": began}
        log |= {"seconds": time.monotonic() - clock, **total(tallies)._asdict()}
        log["gpu"] = worker.machine.get("device", "cpu") != "cpu"
        log |= {"runtime": worker.machine} if worker.machine else {}
        with contextlib.suppress(OSError):  # a log that cannot be written is no reason to make the shard again
            store.write(layout.log(home, number), json.dumps(log).encode())
        made = Made(
            shard=number,
            split=planned.split,
            content=stage.content,
            runtime=worker.runtime,
            requested_runtime=worker.requested_runtime,
            micro_batch=worker.generator.batch_size(),
            device=worker.machine.get("device", ""),
            slice=planned.slice,
            planned=len(candidates),
            tar_sha256=tar.sha256,
            tar_size=tar.size,
            missing=dict(sorted(missing.items())),
        )
        return finish_shard(store, home, verdicts, spool, before, made)


def _write_payload(
    candidates: Sequence[Candidate], worker: StageWorker, spool: Path, shard: str
) -> tuple[StageWorker, TarWriter, list[tuple[str, str]], dict[str, int | None]]:
    """Write ``spool/tar`` and ``spool/rows``; returns by whom, and the tar, verdicts and missing media.

    When memory runs out the shard begins again with half the micro-batch, and its receipt says so: the next shard
    begins with the whole one, since a shard depends on nothing that happened to another.
    """
    write = write_table if worker.generator.row_schema is not None else write_samples
    while True:
        try:
            with TarWriter(spool / "tar") as tar:
                return worker, tar, *write(candidates, worker, tar, spool / "rows")
        except OutOfMemory as error:
            problem = str(error)
        # Not within the except: the error keeps what filled the memory.
        worker = worker.halved(problem)
        again = f"made again, {worker.generator.batch_size()} at a time"
        logger.warning("%s: memory ran out (%s); %s", shard, problem, again)


def finish_shard(
    store: Store, home: str, verdicts: Collection[tuple[str, str]], spool: Path, before: Receipt | None, made: Made
) -> Receipt:
    """Move ``spool/tar``, of which a shard without samples has none, and ``spool/rows`` to their places; receipt last.

    verdicts: verdict and reason of each candidate. before: the receipt that the shard has already. made: what the new
    one says besides.
    """
    rows_sha256, rows_size = sha256_of_file(spool / "rows")
    rejected = Counter(reason for verdict, reason in verdicts if verdict == REJECTED)
    receipt = Receipt(
        **made.model_dump(),
        kept=sum(verdict == KEPT for verdict, _ in verdicts),
        rejected=dict(sorted(rejected.items())),
        rows_sha256=rows_sha256,
        rows_size=rows_size,
    )
    place, tar = layout.receipt(home, receipt.shard), layout.tar(home, receipt.split, receipt.shard)
    if before is not None:
        # When the recipe names another split now, only the old receipt still knows where the old tar lies.
        if before.split != receipt.split:
            store.remove(layout.tar(home, before.split, receipt.shard))
        store.remove(place)  # an old receipt must not vouch for new files, nor a new receipt for old ones
    if receipt.tar_size:
        store.move_in(spool / "tar", tar)
    else:
        store.remove(tar)
    store.move_in(spool / "rows", layout.rows(home, receipt.shard))
    store.write(place, receipt.to_bytes())
    return receipt
