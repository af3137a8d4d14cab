"""What is written for the candidates of a shard: samples in a tar and a row for each, or the rows of a table."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import (
    Drop,
    EncodedImage,
    Keep,
    Rejected,
    Score,
    TableRows,
    Verdict,
    encodable,
    encode_image,
)
from twinset.shards.fields import content_digest, fields_of
from twinset.shards.metering import made_one
from twinset.shards.rows import KEPT, REJECTED, Row, VerdictCheck, write_rows, write_table_rows
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.stage_worker import StageWorker

Fields = list[tuple[str, bytes]]
Missing = dict[str, int | None]


class Judge(NamedTuple):
    """A filter at work. judges: as `FilterSettings.judges`. judge: what it says of captions, frames or pairs."""

    check: VerdictCheck
    judges: str
    judge: Callable[[Any], Any]


Judges = Sequence[Judge]


class Shard(NamedTuple):
    """What became of a shard's candidates.

    verdicts: verdict and reason of each. missing: media that could not be read, and the size that its file had (None:
    it was absent).
    """

    verdicts: list[tuple[str, str]]
    missing: Missing


def write_table(candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path) -> Shard:
    """Write the rows of a table's candidates; the tar stays empty."""
    columns, missing = worker.generator.row_schema, Missing()
    assert columns is not None
    results: list[tuple[Candidate, TableRows | Rejected]] = []
    for batch in _batches(candidates, worker.generator.batch_size()):
        for candidate, made in _made(batch, worker, missing):
            if not isinstance(made, TableRows | Rejected):
                raise TypeError(f"{candidate.key}: a source of tables made a {type(made).__name__}")
            results.append((candidate, made))
            made_one()
    write_table_rows(results, columns, path)
    verdicts = [(REJECTED, made.reason) if isinstance(made, Rejected) else (KEPT, "") for _, made in results]
    return Shard(verdicts, missing)


def write_samples(candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path) -> Shard:
    """Write the samples that are kept into a tar, and a row for each candidate."""
    rows, missing = list[Row](), Missing()
    judges = [
        Judge(VerdictCheck(settings), settings.judges, opened.judge)
        for settings, (_, opened) in zip(worker.subset.filters, worker.filters, strict=True)
    ]
    for batch in _batches(candidates, worker.generator.batch_size() * worker.generator.passes):
        for row, fields in _make_batch(batch, worker, judges, missing):
            rows.append(row)
            made_one()
            if fields is not None:
                tar.add_sample(row.key, fields)
    write_rows(rows, path)
    return Shard([(row.verdict, row.reason) for row in rows], missing)


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


def _made(
    candidates: Sequence[Candidate], worker: StageWorker, missing: Missing
) -> Iterator[tuple[Candidate, Sample | TableRows | Rejected]]:
    """What the generator makes of each candidate; media that it could not read is added to ``missing``."""
    for candidate, made in zip(candidates, worker.generator.make(candidates), strict=True):
        if made.key != candidate.key:
            raise AssertionError(f"{candidate.key}: the generator answered with {made.key}; it must keep the order")
        if isinstance(made, Rejected) and made.media is not None:
            missing[made.media] = made.media_size
        yield candidate, made


def _make_batch(
    candidates: Sequence[Candidate], worker: StageWorker, judges: Judges, missing: Missing
) -> Iterator[tuple[Row, Fields | None]]:
    """Rows, and fields of what is kept, in candidate order, for the candidates of some groups."""
    rows = _rows(candidates, worker)
    wanted = [narrowed for c in candidates if (narrowed := _judge_captions(c, judges, rows[c.key])) is not None]
    made = _samples(wanted, worker, rows, missing)
    encoded: dict[str, EncodedImage] = {}
    if all(judges_what == "captions" for _, judges_what, _ in judges):
        # As they come: a generator can work on the next while this one is encoded.
        asked = {one.key for one in wanted}
        for key, row in rows.items():
            sample = next(made) if key in asked else None
            yield row, (None if sample is None else _encode(sample, row, worker, encoded))
        return
    kept = _judge_pixels([sample for sample in made if sample is not None], judges, rows)
    for key, row in rows.items():
        yield row, (_encode(kept[key], row, worker, encoded) if key in kept else None)


def _rows(candidates: Sequence[Candidate], worker: StageWorker) -> dict[str, Row]:
    """A row for each candidate, by key, as if it were kept."""
    kind = KINDS[worker.source.makes].with_numbers(worker.generator.numbers)
    return {
        c.key: Row(
            kind=kind,
            key=c.key,
            identity=c.identity,
            group=c.group,
            split=c.split,
            verdict=KEPT,
            words=_said(c),
            **c.terms.columns,
        )
        for c in candidates
    }


def _samples(
    candidates: Sequence[Candidate], worker: StageWorker, rows: Mapping[str, Row], missing: Missing
) -> Iterator[Sample | None]:
    """The sample of each candidate; None where its row says why there is none."""
    for candidate, made in _made(candidates, worker, missing):
        row, sample = rows[candidate.key], None
        if isinstance(made, Rejected):
            _reject(row, "generator", Drop(made.reason), made.detail)
        elif isinstance(made, TableRows):
            raise TypeError(f"{candidate.key}: a source of {worker.source.makes}s made rows of a table")
        elif not all(map(encodable, made.pictures().values())):
            _reject(row, "generator", Drop("too-large"), "a side is too long for an image file")
        else:
            sample = made
            row.words = made.described()
            row.sources = tuple(dict.fromkeys((*(one.source for one in made.pictures().values()), *made.sources)))
        yield sample


def _said(candidate: Candidate) -> dict[str, str]:
    """The captions of a planned pair, so that the row of a rejected one says what it was about."""
    if not isinstance(candidate, CaptionedCandidate):
        return {}
    return {"caption0": candidate.captions0[0], "caption1": candidate.captions1[0]}


def _judge_captions(candidate: Candidate, judges: Judges, row: Row) -> Candidate | None:
    for check, judges_what, judge in judges:
        if judges_what == "captions" and isinstance(candidate, CaptionedCandidate):
            judged = check.captions(candidate, judge(candidate))
            if isinstance(judged, Drop):
                _reject(row, check.kind, judged)
                return None
            candidate = judged
    return candidate


def _judge_pixels(samples: Sequence[Sample], judges: Judges, rows: dict[str, Row]) -> dict[str, Sample]:
    """Samples that pass all frame and pair filters; each filter sees only what those before it kept."""
    for check, judges_what, judge in judges:
        judged: list[tuple[Sample, Verdict]]
        if judges_what == "frames":
            shown = {frame.id: (frame, sample.key) for sample in samples for frame in sample.pictures().values()}
            names = [f"{key} (frame {name})" for name, (_, key) in shown.items()]
            verdicts = dict(zip(shown, check.each(names, judge([frame for frame, _ in shown.values()])), strict=True))
            judged = [_of_all(sample, verdicts, check) for sample in samples]
        elif judges_what == "pairs":
            pairs = [sample for sample in samples if isinstance(sample, Pair)]
            judged = list(zip(pairs, check.each([pair.key for pair in pairs], judge(pairs)), strict=True))
        else:
            continue
        samples = []
        for sample, verdict in judged:
            if isinstance(verdict, Drop):
                _reject(rows[sample.key], check.kind, verdict)
                continue
            if isinstance(verdict, Score):
                scores = dict(sample.scores)
                check.added(sample.key, scores, verdict.name, verdict.value)
                sample = replace(sample, scores=scores, flags=_with_flag(sample.flags, verdict))
            samples.append(sample)
    return {sample.key: sample for sample in samples}


def _of_all(sample: Sample, verdicts: Mapping[str, Verdict], check: VerdictCheck) -> tuple[Sample, Verdict]:
    """A sample's verdict from those on its frames: any can drop it; scores are told apart by image (`name0`)."""
    scores, flags = dict(sample.scores), sample.flags
    for role, frame in sample.pictures().items():
        verdict = verdicts[frame.id]
        if isinstance(verdict, Drop):
            return sample, verdict
        if isinstance(verdict, Score):
            check.added(sample.key, scores, f"{verdict.name}{role.removeprefix('image')}", verdict.value)
            flags = _with_flag(flags, verdict)
    return replace(sample, scores=scores, flags=flags), Keep()


def _with_flag(flags: tuple[str, ...], score: Score) -> tuple[str, ...]:
    return (*flags, score.flag) if score.flag and score.flag not in flags else flags


def _encode(sample: Sample, row: Row, worker: StageWorker, encoded: dict[str, EncodedImage]) -> Fields | None:
    """The fields of a sample; None where it has no images, and its row is all there is of it."""
    copy, images = sample.copied(), dict[str, EncodedImage]()
    for role, frame in sample.pictures().items():
        if frame.id not in encoded:
            encoded[frame.id] = encode_image(frame, worker.subset.encoding)
        images[role] = encoded[frame.id]
    row.images = {role: image.sha256 for role, image in images.items()} if copy is None else dict(copy.images)
    row.content = content_digest(sample, row.images)
    row.reason = " ".join(sample.flags)
    row.numbers = {name: sample.scores[name] for name in row.kind.numbers if name in sample.scores}
    if copy is not None:
        return list(copy.fields.items())
    source, extension = worker.source, worker.subset.encoding.format
    return fields_of(sample, images, source.kind, row.terms, extension) if images else None


def _reject(row: Row, judge: str, drop: Drop, detail: str = "") -> None:
    row.verdict, row.filter, row.reason, row.score, row.detail = REJECTED, judge, drop.reason, drop.score, detail
