"""Making one shard: a pure function of its candidates and its stage, finished by its receipt or not at all."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from manifests.candidate import Candidate, CaptionedCandidate
from manifests.errors import BuildFailed
from manifests.plan import PlannedShard, plan_file, slice_digest
from manifests.receipt import Receipt, parse_receipt
from manifests.stage import Stage
from shards.contracts import OutOfMemory
from shards.kinds.fields import EncodedImage, encodable, encode_image, fields_of
from shards.kinds.names import kind_of_source
from shards.kinds.samples import Drop, Keep, Pair, Rejected, Sample, Score, Verdict
from shards.media.source_media import media_of
from shards.rows import KEPT, REJECTED, Row, content_digest
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_writer import TarWriter
from stages.maker import Workshop
from stages.receipts import log_shard, publish_shard
from stages.status import read_stage, why_stale

logger = logging.getLogger("twinset")

Fields = list[tuple[str, bytes]]


def make_shard(
    store: Store, stage: Stage, planned: PlannedShard, candidates: Sequence[Candidate], shop: Workshop
) -> Receipt:
    """Make a shard and publish tar, rows and receipt, in this order; returns the receipt.

    When another worker has finished the shard meanwhile, its receipt is returned and nothing is published. When memory
    runs out the shard begins again with half the micro-batch, and its receipt says so: the next shard begins with the
    whole one, since a shard depends on nothing that happened to another. Raises
    OSError for trouble with disk or network; then nothing is half-written and no receipt exists. Raises `BuildFailed`
    when the candidates are not those that were planned, or when the subset was planned anew meanwhile.
    """
    if slice_digest(candidates) != planned.slice:
        record = layout.meta(stage.name, "stage.json")
        raise BuildFailed(
            f"{store.root}/{layout.plan(stage.name, plan_file(planned.shard)[0])}: the candidates of shard "
            f"{planned.shard:05d} are not those of the plan; remove {record} and run the same build again"
        )
    while True:
        try:
            return _make(store, stage, planned, candidates, shop)
        except OutOfMemory as error:
            problem = str(error)
        # Not within the except: the error keeps what filled the memory.
        shop = shop.halved(problem)
        logger.warning(
            "%s shard %05d: memory ran out (%s); made again, %d at a time",
            stage.name,
            planned.shard,
            problem,
            shop.micro_batch,
        )


def _make(
    store: Store, stage: Stage, planned: PlannedShard, candidates: Sequence[Candidate], shop: Workshop
) -> Receipt:
    began = time.time()
    missing: dict[str, int | None] = {}
    rows: list[Row] = []
    with store.spool() as spool:
        with TarWriter(spool / "tar") as tar:
            for batch in _batches(candidates, shop.micro_batch):
                for row, fields in _make_batch(batch, shop, missing):
                    rows.append(row)
                    if fields is not None:
                        tar.add_sample(row.key, fields)
        receipt = Receipt(
            shard=planned.shard,
            split=planned.split,
            content=stage.content,
            runtime=shop.runtime,
            asked=shop.asked,
            micro_batch=shop.micro_batch,
            slice=planned.slice,
            planned=len(candidates),
            kept=0,
            rejected={},
            tar_sha256=tar.sha256,
            tar_size=tar.size,
            rows_sha256="",
            rows_size=0,
            missing=dict(sorted(missing.items())),
        )
        if (before := _made_meanwhile(store, stage, planned, shop)) is not None:
            return before
        receipt = publish_shard(store, stage.name, receipt, rows, spool)
    log_shard(store, layout.log(stage.name, planned.shard), began)
    return receipt


def _made_meanwhile(store: Store, stage: Stage, planned: PlannedShard, shop: Workshop) -> Receipt | None:
    """The receipt of another worker that vouches for this shard as things are now, if there is one.

    A worker that was taken for dead may end hours later. What it made must not replace a shard from which duplicates
    were taken since, nor one of a newer plan. A receipt that went stale, as when missing media appeared, is replaced.
    """
    now = read_stage(store, stage.name)
    if now is None or (now.content, now.plan) != (stage.content, stage.plan):
        raise BuildFailed(
            f"{store.root}/{stage.name}: shard {planned.shard:05d} is not published, because the subset was planned "
            "anew meanwhile; run the build again"
        )
    try:
        receipt = parse_receipt(store.read(layout.receipt(stage.name, planned.shard)))
    except FileNotFoundError:
        return None
    media = media_of(shop.subset.source)
    return receipt if not why_stale(store, stage, planned, receipt, media) else None


def _batches(candidates: Sequence[Candidate], size: int) -> Iterator[list[Candidate]]:
    """Whole groups in order, as many at a time as it takes to reach a size: one, where that is 0 or 1."""
    batch: list[Candidate] = []
    for _, group in itertools.groupby(candidates, key=lambda candidate: candidate.group):
        batch += group
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _make_batch(
    candidates: Sequence[Candidate], shop: Workshop, missing: dict[str, int | None]
) -> Iterator[tuple[Row, Fields | None]]:
    """Rows, and fields of what is kept, in candidate order, for the candidates of some groups."""
    kind = kind_of_source(shop.subset.source.kind)
    rows = {c.key: Row(kind=kind, key=c.key, group=c.group, split=c.split, verdict=KEPT) for c in candidates}
    wanted = [narrowed for c in candidates if (narrowed := _judge_captions(c, shop, rows[c.key])) is not None]
    samples: dict[str, Sample] = {}
    for candidate, made in zip(wanted, shop.generator.make(wanted), strict=True):
        row = rows[candidate.key]
        if made.key != candidate.key:
            raise AssertionError(f"{candidate.key}: the generator answered with {made.key}; it must keep the order")
        if isinstance(made, Rejected):
            _reject(row, "generator", Drop(made.reason), made.detail)
            if made.media is not None:
                missing[made.media] = made.media_size
        elif not all(map(encodable, made.pictures().values())):
            _reject(row, "generator", Drop("too-large"), "a side is too long for an image file")
        else:
            samples[made.key] = made
            row.words = made.described()
            row.sources = tuple(dict.fromkeys((*(one.source for one in made.pictures().values()), *made.sources)))
    kept = _judge_pixels(list(samples.values()), shop, rows)
    encoded: dict[str, EncodedImage] = {}
    for key, row in rows.items():
        yield row, (_encode(kept[key], row, shop, encoded) if key in kept else None)


def _judge_captions(candidate: Candidate, shop: Workshop, row: Row) -> Candidate | None:
    for name, judge in shop.filters:
        if judge.judges == "captions" and isinstance(candidate, CaptionedCandidate):
            judged = judge(candidate)
            if isinstance(judged, Drop):
                row.words = {"caption0": candidate.captions0[0], "caption1": candidate.captions1[0]}
                _reject(row, name, judged)
                return None
            candidate = judged
    return candidate


def _judge_pixels(samples: Sequence[Sample], shop: Workshop, rows: dict[str, Row]) -> dict[str, Sample]:
    """Samples that pass all frame and pair filters; each filter sees only what those before it kept."""
    for name, judge in shop.filters:
        judged: list[tuple[Sample, Verdict]]
        if judge.judges == "frames":
            frames = {frame.id: frame for sample in samples for frame in sample.pictures().values()}
            verdicts = dict(zip(frames, judge(list(frames.values())), strict=True))
            judged = [_of_all(sample, verdicts) for sample in samples]
        elif judge.judges == "pairs":
            pairs = [sample for sample in samples if isinstance(sample, Pair)]
            judged = list(zip(pairs, judge(pairs), strict=True))
        else:
            continue
        samples = []
        for sample, verdict in judged:
            if isinstance(verdict, Drop):
                _reject(rows[sample.key], name, verdict)
                continue
            if isinstance(verdict, Score):
                sample = replace(sample, scores={**sample.scores, verdict.name: verdict.value})
            samples.append(sample)
    return {sample.key: sample for sample in samples}


def _of_all(sample: Sample, verdicts: Mapping[str, Verdict]) -> tuple[Sample, Verdict]:
    """A sample's verdict from those on its frames: any can drop it; scores are told apart by image (`name0`)."""
    scores = dict(sample.scores)
    for role, frame in sample.pictures().items():
        verdict = verdicts[frame.id]
        if isinstance(verdict, Drop):
            return sample, verdict
        if isinstance(verdict, Score):
            scores[f"{verdict.name}{role.removeprefix('image')}"] = verdict.value
    return replace(sample, scores=scores), Keep()


def _encode(sample: Sample, row: Row, shop: Workshop, encoded: dict[str, EncodedImage]) -> Fields | None:
    """The fields of a sample; None where it has no images, and its row is all there is of it."""
    images = {}
    for role, frame in sample.pictures().items():
        if frame.id not in encoded:
            encoded[frame.id] = encode_image(frame, shop.subset.encoding)
        images[role] = encoded[frame.id]
    row.images = {role: image.sha256 for role, image in images.items()}
    row.content = content_digest(sample, row.images)
    source = shop.subset.source
    return fields_of(sample, images, source.kind, source.licence, shop.subset.encoding.format) if images else None


def _reject(row: Row, judge: str, drop: Drop, detail: str = "") -> None:
    row.verdict, row.filter, row.reason, row.score, row.detail = REJECTED, judge, drop.reason, drop.score, detail
