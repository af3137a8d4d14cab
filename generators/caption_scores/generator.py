"""Plans a row a negative caption, those of one caption together, and scores each distinct text of a shard once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS, Scored, Scorer, ScorerSettings
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption, columns_of, scored_schema
from twinset.shards.contracts import Context, StageGenerator
from twinset.shards.finished_stage import FinishedStage

ROWS_HELD = 400_000  # of a table whose captions are scattered; it is read once for so many rows
SLICE = 4096  # rows that are Python objects at a time
CAPTION = "caption"


def rows_by_caption(
    table: FinishedStage, columns: Sequence[str], held: int = ROWS_HELD
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a table, those of one caption one after the other, with a name of the caption for each.

    Captions come in the order of their first rows, rows of a caption in the order of the table. Memory: 13 bytes a row
    of the table, 35 and ``held`` rows where the captions are scattered. Rows of captions that are together already are
    read in one pass.

    Args:
        table: a finished stage with a column ``caption``.
        columns: to read, ``caption`` among them.
        held: rows that memory may hold.
    """
    hashes = _hashes(table)
    if not len(hashes):
        return
    ranks = _ranks(hashes)
    if ranks is None:
        at = 0
        for batch in table.batches(columns):
            yield from _named(batch, hashes[at : at + len(batch)])
            at += len(batch)
        return
    sizes = np.bincount(ranks)
    begins = np.cumsum(sizes) - sizes
    # Captions of like quotient come in one pass: as many rows as are held, and those of the caption that fills it.
    turn = begins // held
    for number in np.unique(turn).tolist():
        yield from _collected(table, columns, hashes, ranks, turn[ranks] == number)


def _hashes(table: FinishedStage) -> NDArray[np.uint64]:
    """A hash of each row's caption. That two captions share one is harmless: their rows come together."""
    found = [np.empty(0, dtype=np.uint64)]
    for batch in table.batches([CAPTION]):
        encoded = batch[CAPTION].dictionary_encode()  # a caption that follows itself is hashed once
        texts = encoded.dictionary.to_pylist()
        codes = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
        found.append(np.frombuffer(codes, dtype="<u8")[encoded.indices.to_numpy()])
    return np.concatenate(found)


def _ranks(hashes: NDArray[np.uint64]) -> NDArray[np.int32] | None:
    """The place of each row's caption among all, by their first rows; None where the rows of each are together."""
    begins = np.concatenate(([True], hashes[1:] != hashes[:-1]))
    runs = hashes[begins]  # rows of one caption that are together, of which there are far fewer than rows as a rule
    order = np.argsort(runs, kind="stable").astype(np.int32)
    runs = runs[order]
    new = np.concatenate(([True], runs[1:] != runs[:-1]))
    del runs
    if new.all():
        return None
    first = order[new]  # the first run of each caption, in the order of their hashes
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = rank[np.cumsum(new, dtype=np.int32) - 1]
    del order, new, first, rank
    return np.repeat(ranks, np.diff(np.flatnonzero(begins), append=len(hashes)))


def _collected(
    table: FinishedStage,
    columns: Sequence[str],
    hashes: NDArray[np.uint64],
    ranks: NDArray[np.int32],
    chosen: NDArray[np.bool_],
) -> Iterator[tuple[str, dict[str, str]]]:
    at, parts = 0, list[pa.RecordBatch]()
    for batch in table.batches(columns):
        here = chosen[at : at + len(batch)]
        if here.any():
            parts.append(batch.filter(pa.array(here)))
        at += len(batch)
    order = np.argsort(ranks[chosen], kind="stable")
    rows, names = pa.Table.from_batches(parts).combine_chunks(), hashes[chosen][order]
    for start in range(0, len(order), SLICE):
        some = rows.take(pa.array(order[start : start + SLICE])).combine_chunks()
        (batch,) = some.to_batches()
        yield from _named(batch, names[start : start + SLICE])


def _named(batch: pa.RecordBatch, hashes: NDArray[np.uint64]) -> Iterator[tuple[str, dict[str, str]]]:
    for start in range(0, len(batch), SLICE):
        rows = batch.slice(start, SLICE).to_pylist()
        for row, hashed in zip(rows, hashes[start : start + SLICE].tolist(), strict=True):
            yield f"caption-{hashed:016x}", row


ROWS = 1 << 16  # negatives of which each distinct text is scored once: all of a shard, as a rule


class ScoreGenerator(StageGenerator[CaptionScores]):
    """A row a negative caption with the identity that it has in the earlier table; those of a caption are a group.

    The last bits of a score depend on device, threads and the texts of its pass. Which these are, the shard decides:
    texts are sorted by themselves before they are cut into passes.
    """

    version = 1
    isolation = "process"  # torch's number of threads is its process's
    candidate = NegativeCaption

    def __init__(self, source: CaptionScores, context: Context) -> None:
        super().__init__(source, context)
        self.micro_batch, self.threads = ROWS, source.threads
        self.scores = columns_of(source.scores_given)
        # truncated: scores of which only the beginning of the caption or of the negative was read, with a space.
        self.columns = pa.schema([*scored_schema(self.scores), pa.field("truncated", pa.string(), nullable=False)])

    def weights(self) -> Mapping[str, str]:
        return {scorer.kind: digest for scorer in self.source.scorers if (digest := scorer.weights())}

    def device(self) -> str:
        return self.source.device_name("source.device")

    def plan(self) -> Iterator[NegativeCaption]:
        """Rows of one caption after the other; captions in the order in which they come first."""
        for group, row in rows_by_caption(self.earlier, ["identity", *TERMS, *COLUMNS.names]):
            identity, shows = json.loads(row.pop("identity")), (Terms.taken(row),)
            yield NegativeCaption(**self.identified(*identity, group=group, shows=shows), **row)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each with its scores, ``no-text`` where a text is empty, or ``score-not-finite``.

        Raises `contracts.parts.OutOfMemory` when a pass does not fit, `BuildFailed` when a model does not, and
        `WrongUse` when a model's files cannot be used.
        """
        planned = cast(Sequence[NegativeCaption], candidates)
        whole = [one for one in planned if one.caption.strip() and one.negative_caption.strip()]
        texts = list(dict.fromkeys(text for one in whole for text in (one.caption, one.negative_caption)))
        place = {text: number for number, text in enumerate(texts)}
        scored = self._scored(texts) if texts else {}
        for one in planned:
            if one.caption not in place or one.negative_caption not in place:
                yield Rejected(one.key, "no-text")
                continue
            first, second = place[one.caption], place[one.negative_caption]
            scores = dict.fromkeys(self.scores, cast(float | None, None))
            for scorer, found in scored.values():
                scores |= _scores(scorer, found, first, second)
            wrong = [name for name, value in scores.items() if value is not None and not np.isfinite(value)]
            if wrong:
                yield Rejected(one.key, "score-not-finite", ", ".join(wrong))
                continue
            cut = [scorer.score for scorer, found in scored.values() if found.truncated[[first, second]].any()]
            yield TableRows(one.key, [{**one.row(), **scores, "truncated": " ".join(cut)}])

    def _scored(self, texts: Sequence[str]) -> dict[str, tuple[ScorerSettings, Scored]]:
        from twinset.models.device import inference, within_memory

        found: dict[str, tuple[ScorerSettings, Scored]] = {}
        with inference(self.threads):
            for settings, scorer in self._scorers:
                size = max(1, settings.micro_batch * self.micro_batch // ROWS)
                scored = within_memory(partial(scorer, texts, size))
                if not len(scored.values) == len(scored.truncated) == len(texts):
                    raise BuildFailed(
                        f"{CAPTION_SCORERS.named(settings.kind)}: {len(scored.values)} scores and "
                        f"{len(scored.truncated)} marks of what was cut for {len(texts)} texts; its package must give "
                        "one each a text"
                    )
                found[settings.kind] = settings, scored
        return found

    @cached_property
    def _scorers(self) -> list[tuple[ScorerSettings, Scorer]]:
        from twinset.models.device import GPU, load_within_memory

        device = "cpu" if self.source.device == "cpu" else GPU
        each = self.source.scorers
        return [(one, load_within_memory(f"the scorer {one.kind}", partial(one.open, device))) for one in each]


def _scores(scorer: ScorerSettings, found: Scored, first: int, second: int) -> dict[str, float | None]:
    """Scores by column. first, second: places of caption and negative."""
    if scorer.of_pairs:
        return {scorer.score: float(found.values[first].astype(np.float64) @ found.values[second].astype(np.float64))}
    return {name: float(found.values[place]) for name, place in zip(scorer.columns(), (first, second), strict=True)}
