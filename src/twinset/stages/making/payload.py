"""What is written for the candidates of a shard: samples in a tar and a row for each, or the rows of a table."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from twinset.contracts.candidate import Candidate, CaptionedCandidate
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
from twinset.contracts.parts import Filter
from twinset.shards.fields import content_digest, fields_of
from twinset.shards.metering import made_one
from twinset.shards.rows import KEPT, REJECTED, Row, VerdictCheck, write_rows, write_table_rows
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.job import StageWorker

Fields = list[tuple[str, bytes]]
#: Media that could not be read, by the size that the file had (None: it was absent).
Missing = dict[str, int | None]


def write_table(
    candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path
) -> tuple[list[tuple[str, str]], Missing]:
    """Write the rows of a table's candidates; the tar stays empty. Returns as `write_samples`."""
    columns, missing = worker.generator.row_schema, Missing()
    assert columns is not None
    results: list[tuple[Candidate, TableRows | Rejected]] = []
    for batch in _batches(candidates, worker.generator.batch_size()):
        for candidate, made in _made(batch, worker, missing):
            if not isinstance(made, TableRows | Rejected):
                raise TypeError(f"{candidate.key}: a source of tables made a {type(made).__name__}")
            results.append((candidate, made))
    write_table_rows(results, columns, path)
    return [(REJECTED, made.reason) if isinstance(made, Rejected) else (KEPT, "") for _, made in results], missing


def write_samples(
    candidates: Sequence[Candidate], worker: StageWorker, tar: TarWriter, path: Path
) -> tuple[list[tuple[str, str]], Missing]:
    """Write the samples that are kept into a tar, and a row for each candidate.

    Returns verdict and reason of each, and the media that are missing.
    """
    samples = _Samples(worker)
    for batch in _batches(candidates, worker.generator.batch_size() * worker.generator.passes):
        for key, fields in samples.of(batch):
            tar.add_sample(key, fields)
    rows = [*samples.rows.values()]
    write_rows(rows, path)
    return [(row.verdict, row.reason) for row in rows], samples.missing


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
        made_one()
        yield candidate, made


class _Samples:
    """The samples of a shard in the making. rows: a row for each candidate, by key, in the order of the plan."""

    def __init__(self, worker: StageWorker) -> None:
        self._worker, self.rows, self.missing = worker, dict[str, Row](), Missing()
        self._kind = KINDS[worker.source.makes].with_numbers(worker.generator.numbers)
        self._judges = [(VerdictCheck(judge), judge) for judge in worker.filters]

    def of(self, candidates: Sequence[Candidate]) -> Iterator[tuple[str, Fields]]:
        """Key and fields of what is kept of some groups of candidates, in their order."""
        self.rows |= {candidate.key: self._row(candidate) for candidate in candidates}
        wanted = [narrowed for c in candidates if (narrowed := self._judge_captions(c)) is not None]
        samples = self._made(wanted)
        if any(judge.judges != "captions" for _, judge in self._judges):
            samples = iter(self._judge_pixels([*samples]))
        # Else as they come: a generator can work on the next while this one is encoded.
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
            if judge.judges == "captions" and isinstance(candidate, CaptionedCandidate):
                verdict = check.captions(candidate, judge.judge(candidate))
                if isinstance(verdict, Drop):
                    self._reject(candidate.key, check.kind, verdict)
                    return None
                candidate = verdict
        return candidate

    def _made(self, candidates: Sequence[Candidate]) -> Iterator[Sample]:
        """The samples of candidates; the rows of others say why there is none."""
        for candidate, made in _made(candidates, self._worker, self.missing):
            if isinstance(made, Rejected):
                self._reject(candidate.key, "generator", Drop(made.reason), made.detail)
            elif isinstance(made, TableRows):
                raise TypeError(f"{candidate.key}: a source of {self._worker.source.makes}s made rows of a table")
            elif not all(map(encodable, made.pictures().values())):
                self._reject(candidate.key, "generator", Drop("too-large"), "a side is too long for an image file")
            else:
                row, pictures = self.rows[candidate.key], made.pictures().values()
                row.words = made.described()
                row.sources = tuple(dict.fromkeys((*(one.source for one in pictures), *made.sources)))
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
        given = check.each([pair.key for pair in pairs], judge.judge(pairs))
        return [(pair, [("", verdict)]) for pair, verdict in zip(pairs, given, strict=True)]
    frames = {frame.id: (frame, sample.key) for sample in samples for frame in sample.pictures().values()}
    names = [f"{key} (frame {name})" for name, (_, key) in frames.items()]
    verdicts = dict(zip(frames, check.each(names, judge.judge([frame for frame, _ in frames.values()])), strict=True))
    return [(sample, [(role, verdicts[frame.id]) for role, frame in sample.pictures().items()]) for sample in samples]
