"""What is written for the candidates of a shard: samples in a tar and a row for each, or the rows of a table."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Sample, SampleKind
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
from twinset.contracts.parts import Filter
from twinset.shards.fields import content_digest, fields_of
from twinset.shards.metering import made_one
from twinset.shards.rows import KEPT, REJECTED, Row, VerdictCheck, write_rows, write_table_rows
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.stage_worker import StageWorker

Fields = list[tuple[str, bytes]]
Missing = dict[str, int | None]


#: The filters of a stage at work, each with the check of its verdicts.
Judges = Sequence[tuple[VerdictCheck, Filter]]
#: Verdict and reason of each candidate; media that could not be read, by the size that the file had (None: absent).
Outcome = tuple[list[tuple[str, str]], Missing]


def write_table(candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path) -> Outcome:
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
    return [(REJECTED, made.reason) if isinstance(made, Rejected) else (KEPT, "") for _, made in results], missing


def write_samples(candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path) -> Outcome:
    """Write the samples that are kept into a tar, and a row for each candidate."""
    rows, missing = list[Row](), Missing()
    judges = [(VerdictCheck(judge), judge) for judge in worker.filters]
    for batch in _batches(candidates, worker.generator.batch_size() * worker.generator.passes):
        for row, fields in _make_batch(batch, worker, judges, missing):
            rows.append(row)
            made_one()
            if fields is not None:
                tar.add_sample(row.key, fields)
    write_rows(rows, path)
    return [(row.verdict, row.reason) for row in rows], missing


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
    kind = KINDS[worker.source.makes].with_numbers(worker.generator.numbers)
    rows = {candidate.key: _row(candidate, kind) for candidate in candidates}
    wanted = [narrowed for c in candidates if (narrowed := _judge_captions(c, judges, rows[c.key])) is not None]
    samples = _samples(wanted, worker, rows, missing)
    encoded: dict[str, EncodedImage] = {}
    if any(judge.judges != "captions" for _, judge in judges):
        kept = _judge_pixels([sample for sample in samples if sample is not None], judges, rows)
    else:
        # As they come: a generator can work on the next while this one is encoded.
        kept = None
        asked = {candidate.key for candidate in wanted}
    for key, row in rows.items():
        sample = kept.get(key) if kept is not None else next(samples) if key in asked else None
        yield row, (None if sample is None else _encode(sample, row, worker, encoded))


def _row(candidate: Candidate, kind: SampleKind) -> Row:
    """A row as if the candidate were kept; that of a planned pair says what it was about, should it be rejected."""
    words = {}
    if isinstance(candidate, CaptionedCandidate):
        words = {"caption0": candidate.captions0[0], "caption1": candidate.captions1[0]}
    return Row(
        kind=kind,
        key=candidate.key,
        identity=candidate.identity,
        group=candidate.group,
        split=candidate.split,
        verdict=KEPT,
        words=words,
        **candidate.terms.columns,
    )


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


def _judge_captions(candidate: Candidate, judges: Judges, row: Row) -> Candidate | None:
    """The candidate with the captions that filters leave; None where one drops it."""
    for check, judge in judges:
        if judge.judges == "captions" and isinstance(candidate, CaptionedCandidate):
            verdict = check.captions(candidate, judge.judge(candidate))
            if isinstance(verdict, Drop):
                _reject(row, check.kind, verdict)
                return None
            candidate = verdict
    return candidate


def _judge_pixels(samples: Sequence[Sample], judges: Judges, rows: dict[str, Row]) -> dict[str, Sample]:
    """Samples that pass all frame and pair filters; each filter sees only what those before it kept."""
    for check, judge in judges:
        if judge.judges == "captions":
            continue
        kept = []
        for sample, verdicts in (_on_frames if judge.judges == "frames" else _on_pairs)(samples, check, judge):
            scores, flags = dict(sample.scores), list(sample.flags)
            for role, verdict in verdicts:
                if isinstance(verdict, Drop):
                    _reject(rows[sample.key], check.kind, verdict)
                    break
                if isinstance(verdict, Score):
                    check.added(sample.key, scores, f"{verdict.name}{role.removeprefix('image')}", verdict.value)
                    flags += [verdict.flag] if verdict.flag and verdict.flag not in flags else []
            else:
                kept.append(replace(sample, scores=scores, flags=tuple(flags)))
        samples = kept
    return {sample.key: sample for sample in samples}


def _on_frames(
    samples: Sequence[Sample], check: VerdictCheck, judge: Filter
) -> Iterator[tuple[Sample, list[tuple[str, Verdict]]]]:
    """Each sample with the verdicts on its images by role; an image that several share is judged once."""
    frames = {frame.id: (frame, sample.key) for sample in samples for frame in sample.pictures().values()}
    names = [f"{key} (frame {name})" for name, (_, key) in frames.items()]
    given = check.each(names, judge.judge([frame for frame, _ in frames.values()]))
    verdicts = dict(zip(frames, given, strict=True))
    for sample in samples:
        yield sample, [(role, verdicts[frame.id]) for role, frame in sample.pictures().items()]


def _on_pairs(
    samples: Sequence[Sample], check: VerdictCheck, judge: Filter
) -> Iterator[tuple[Sample, list[tuple[str, Verdict]]]]:
    """Each pair with the verdict on it."""
    pairs = [sample for sample in samples if isinstance(sample, Pair)]
    for pair, verdict in zip(pairs, check.each([pair.key for pair in pairs], judge.judge(pairs)), strict=True):
        yield pair, [("", verdict)]


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
