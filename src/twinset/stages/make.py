"""Making one shard: a pure function of its candidates and its stage, finished by its receipt or not at all."""

import contextlib
import errno
import itertools
import json
import logging
import os
import socket
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import BuildFailed, TwinsetError, in_words
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import (
    Drop,
    EncodedImage,
    Rejected,
    Score,
    TableRows,
    Verdict,
    encodable,
    encode_image,
)
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.parts import Filter, OutOfMemory
from twinset.contracts.receipt import Made, Receipt
from twinset.contracts.stage import ANY_RUNTIME, Stage
from twinset.shards.metering import metered, total
from twinset.shards.plan import PlannedShard, plan_digest, plan_file, read_footer, read_slice, slice_digest
from twinset.shards.records import planned_stage, read_planned, read_receipt, read_stage
from twinset.shards.rows import (
    KEPT,
    REJECTED,
    Row,
    TarWriter,
    VerdictCheck,
    content_digest,
    fields_of,
    write_rows,
    write_table_rows,
)
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.job import StageWorker, receipt_holds, refuse_mixed_runtimes, worker_of

logger = logging.getLogger("twinset")

RETRIES = 3
#: A full disk or a wrong place does not mend by waiting, and an object store has been waited for (`ETIMEDOUT`).
HOPELESS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ETIMEDOUT),
)
Fields = list[tuple[str, bytes]]
#: Media that could not be read, by the size that the file had (None: it was absent).
Missing = dict[str, int | None]


def make_and_retry(
    root: str, home: str, number: int, worker: StageWorker | None = None, stage: Stage | None = None
) -> Receipt:
    """Make one shard, and try again when the network or a disk had trouble that may pass; returns its receipt.

    Raises as `make_shard`, and of what else a source raises `BuildFailed`.
    """
    for attempt in range(RETRIES + 1):
        try:
            return make_shard(root, home, number, worker, stage)
        except OSError as error:
            if error.errno in HOPELESS or attempt == RETRIES:
                if type(error).__module__ == "builtins":
                    raise
                raise BuildFailed(in_words(error)) from None  # as below
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
        # Found out before the work rather than after it; the end of the stage looks at all receipts.
        first = read_receipt(store, home, 0)
        machines = {first.machine} if first is not None and first.content == stage.content else set()
        refuse_mixed_runtimes(f"{store.root}/{home}", {worker.runtime} | machines)
    planned = _planned(root, home, stage.plan)[number]
    return write_shard(store, stage, planned, candidates_of(store, worker, stage.plan, planned), worker)


def candidates_of(store: Store, worker: StageWorker, plan: str, planned: PlannedShard) -> list[Candidate]:
    """The candidates of a shard; `BuildFailed` for others than were planned. plan: digest of the stage's plan."""
    file, row_group = plan_file(planned.shard)
    path, problem = layout.plan(worker.home, file), ""
    try:
        with store.open(path) as stream:
            candidates = read_slice(stream, row_group, worker.source.candidate, _footer(store.root, path, plan))
        if slice_digest(candidates) == planned.slice:
            return candidates
    except (FileNotFoundError, TypeError, pa.ArrowException) as error:
        problem = f" ({error})"
    raise BuildFailed(
        f"{store.root}/{path}: the candidates of shard {planned.shard:05d} are not those of the plan{problem}; remove "
        f"{layout.meta(worker.home, 'stage.json')} and run the same build again"
    )


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
    `BuildFailed` when the stage was planned again meanwhile. When memory runs out the shard begins again with half the
    micro-batch, and its receipt says so; the next shard begins with the whole one.
    """
    home, number, media = worker.home, planned.shard, worker.source.media_files()
    write = _write_table if worker.source.row_schema is not None else _write_samples
    began, clock = time.time(), time.monotonic()  # since 1970; one that nobody sets
    with metered() as tallies, store.spool() as spool:
        while True:
            try:
                with TarWriter(spool / "tar") as tar:
                    verdicts, missing = write(candidates, worker, tar, spool / "rows")
                break
            except OutOfMemory as error:
                problem = str(error)
            # Not within the except: the error keeps what filled the memory.
            worker = worker.halved(problem)
            again = f"made again, {worker.source.batch_size()} at a time"
            logger.warning("%s shard %05d: memory ran out (%s); %s", home, number, problem, again)
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
            micro_batch=worker.source.batch_size(),
            device=worker.machine.get("device", ""),
            slice=planned.slice,
            planned=len(candidates),
            tar_sha256=tar.sha256,
            tar_size=tar.size,
            missing=dict(sorted(missing.items())),
        )
        return finish_shard(store, home, verdicts, spool, before, made)


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


def _write_samples(
    candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path
) -> tuple[list[tuple[str, str]], Missing]:
    """Write the samples that are kept into a tar, and a row for each candidate.

    Returns verdict and reason of each, and the media that are missing.
    """
    samples = _Samples(worker)
    for batch in _batches(candidates, worker.source.batch_size() * worker.source.passes):
        for key, fields in samples.of(batch):
            tar.add_sample(key, fields)
    rows = [*samples.rows.values()]
    write_rows(rows, path)
    return [(row.verdict, row.reason) for row in rows], samples.missing


def _write_table(
    candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path
) -> tuple[list[tuple[str, str]], Missing]:
    """Write the rows of a table's candidates; the tar stays empty. Returns as `_write_samples`."""
    columns, missing = worker.source.row_schema, Missing()
    assert columns is not None
    results: list[tuple[Candidate, TableRows | Rejected]] = []
    for batch in _batches(candidates, worker.source.batch_size()):
        for candidate, made in _results(batch, worker, missing):
            if not isinstance(made, TableRows | Rejected):
                raise TypeError(f"{candidate.key}: a source of tables made a {type(made).__name__}")
            results.append((candidate, made))
    write_table_rows(results, columns, path)
    return [(REJECTED, made.reason) if isinstance(made, Rejected) else (KEPT, "") for _, made in results], missing


def _batches(candidates: Sequence[Candidate], size: int) -> Iterator[list[Candidate]]:
    """Batch whole groups until they hold at least ``size`` candidates; one group a batch where that is 0 or 1."""
    batch: list[Candidate] = []
    for _, group in itertools.groupby(candidates, key=lambda candidate: candidate.group):
        batch += group
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _results(
    candidates: Sequence[Candidate], worker: StageWorker, missing: Missing
) -> Iterator[tuple[Candidate, Sample | TableRows | Rejected]]:
    """What the source makes of each candidate; media that it could not read is added to ``missing``."""
    for candidate, made in zip(candidates, worker.source.make(candidates), strict=True):
        if made.key != candidate.key:
            raise AssertionError(f"{candidate.key}: the source answered with {made.key}; it must keep the order")
        if isinstance(made, Rejected) and made.media is not None:
            missing[made.media] = made.media_size
        yield candidate, made


class _Samples:
    """The samples of a shard in the making. rows: a row for each candidate, by key, in the order of the plan."""

    def __init__(self, worker: StageWorker) -> None:
        self._worker, self.rows, self.missing = worker, dict[str, Row](), Missing()
        self._kind = KINDS[worker.source.makes].with_numbers(worker.source.numbers)
        self._judges = [(VerdictCheck(judge), judge) for judge in worker.filters]

    def of(self, candidates: Sequence[Candidate]) -> Iterator[tuple[str, Fields]]:
        """Key and fields of what is kept of some groups of candidates, in their order."""
        self.rows |= {candidate.key: self._row(candidate) for candidate in candidates}
        wanted = [narrowed for c in candidates if (narrowed := self._judge_captions(c)) is not None]
        samples = self._made(wanted)
        if any(judge.judges != "captions" for _, judge in self._judges):
            samples = iter(self._judge_pixels([*samples]))
        # Else as they come: a source can work on the next while a sample is encoded.
        encoded: dict[str, EncodedImage] = {}
        for sample in samples:
            if (fields := self._encode(sample, encoded)) is not None:
                yield sample.key, fields

    def _row(self, candidate: Candidate) -> Row:
        """A row as if the candidate were kept; that of a pair says what it was about, should it be rejected."""
        words = {}
        if isinstance(candidate, CaptionedCandidate):
            words = {"caption0": candidate.captions0[0], "caption1": candidate.captions1[0]}
        named = {name: getattr(candidate, name) for name in ("key", "identity", "group", "split", *TERMS)}
        return Row(kind=self._kind, verdict=KEPT, words=words, **named)

    def _reject(self, key: str, judge: str, drop: Drop, detail: str = "") -> None:
        row = self.rows[key]
        row.verdict, row.filter, row.reason, row.score, row.detail = REJECTED, judge, drop.reason, drop.score, detail

    def _judge_captions(self, candidate: Candidate) -> Candidate | None:
        """The candidate with the captions that filters leave; None where one drops it."""
        for check, judge in self._judges:
            if judge.judges == "captions":
                if not isinstance(candidate, CaptionedCandidate):
                    raise TypeError(f"{candidate.key}: {check.kind} judges captions: plan CaptionedCandidate")
                verdict = check.captions(candidate, judge.judge(candidate))
                if isinstance(verdict, Drop):
                    self._reject(candidate.key, check.kind, verdict)
                    return None
                candidate = verdict
        return candidate

    def _made(self, candidates: Sequence[Candidate]) -> Iterator[Sample]:
        """The samples of candidates; the rows of others say why there is none."""
        for candidate, made in _results(candidates, self._worker, self.missing):
            if isinstance(made, Rejected):
                self._reject(candidate.key, "generator", Drop(made.reason), made.detail)
            elif isinstance(made, TableRows):
                raise TypeError(f"{candidate.key}: a source of {self._worker.source.makes}s made rows of a table")
            elif not all(map(encodable, made.pictures().values())):
                self._reject(candidate.key, "generator", Drop("too-large"), "a side is too long for an image file")
            else:
                row, pictures = self.rows[candidate.key], made.pictures().values()
                row.words = made.described()
                row.sources = tuple(dict.fromkeys((*(frame.source for frame in pictures), *made.sources)))
                yield made

    def _judge_pixels(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Samples that pass all frame and pair filters; each filter sees only what those before it kept."""
        for check, judge in self._judges:
            if judge.judges == "captions":
                continue
            kept = []
            for sample, verdicts in _verdicts(samples, check, judge):
                scores = dict(sample.scores)
                for role, verdict in verdicts:
                    if isinstance(verdict, Drop):
                        self._reject(sample.key, check.kind, verdict)
                        break
                    if isinstance(verdict, Score):
                        check.added(sample.key, scores, f"{verdict.name}{role.removeprefix('image')}", verdict.value)
                else:
                    kept.append(replace(sample, scores=scores))
            samples = kept
        return samples

    def _encode(self, sample: Sample, encoded: dict[str, EncodedImage]) -> Fields | None:
        """The fields of a sample; None where it has no images, and its row is all there is of it.

        encoded: images by id, since several samples of a group may show one.
        """
        row, encoding, copy, images = self.rows[sample.key], self._worker.subset.encoding, sample.copied(), {}
        for role, frame in sample.pictures().items():
            if frame.id not in encoded:
                encoded[frame.id] = encode_image(frame, encoding)
            images[role] = encoded[frame.id]
        row.images = {role: image.sha256 for role, image in images.items()} if copy is None else dict(copy.images)
        row.content = content_digest(sample, row.images)
        row.numbers = {name: sample.scores[name] for name in row.kind.numbers if name in sample.scores}
        if copy is not None:
            return list(copy.fields.items())
        return fields_of(sample, images, self._worker.source.kind, row.terms, encoding.format) if images else None


def _verdicts(
    samples: Sequence[Sample], check: VerdictCheck, judge: Filter
) -> list[tuple[Sample, list[tuple[str, Verdict]]]]:
    """Each sample with the verdicts of a filter: on its images, by role, each judged once; or on the pair."""
    if judge.judges == "pairs":
        pairs = [sample for sample in samples if isinstance(sample, Pair)]
        if len(pairs) < len(samples):
            raise TypeError(f"{samples[0].key}: {check.kind} judges pairs: make Pair, which its subclasses are too")
        given = check.each([pair.key for pair in pairs], judge.judge(pairs))
        return [(pair, [("", verdict)]) for pair, verdict in zip(pairs, given, strict=True)]
    frames = {frame.id: (frame, sample.key) for sample in samples for frame in sample.pictures().values()}
    names = [f"{key} (frame {name})" for name, (_, key) in frames.items()]
    verdicts = dict(zip(frames, check.each(names, judge.judge([frame for frame, _ in frames.values()])), strict=True))
    return [(sample, [(role, verdicts[frame.id]) for role, frame in sample.pictures().items()]) for sample in samples]
