"""Plans a row a negative caption, those of one caption together, and scores each distinct text of a shard once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import cast

import numpy as np
import pyarrow as pa

from twinset.generators.caption_scores.grouping import rows_by_caption
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS, Scored, Scorer, ScorerSettings
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.negative_captions.scored import columns_of, scored_schema
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import sample_key
from twinset.manifests.errors import BuildFailed
from twinset.shards.contracts import Context, Generator
from twinset.shards.kinds.samples import Rejected, TableRows

ROWS = 1 << 16  # negatives of which each distinct text is scored once: all of a shard, as a rule


class ScoreGenerator(Generator[CaptionScores]):
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

    def inputs(self) -> str:
        """Digest of the earlier table."""
        return self.context.earlier(self.source.negatives).digest

    def weights(self) -> Mapping[str, str]:
        """One digest a scorer."""
        return {scorer.kind: digest for scorer in self.source.scorers if (digest := scorer.weights())}

    def device(self) -> str:
        return self.source.device_name("source.device")

    def plan(self) -> Iterator[NegativeCaption]:
        """Rows of one caption after the other; captions in the order in which they come first."""
        table = self.context.earlier(self.source.negatives)
        for group, row in rows_by_caption(table, ["identity", *COLUMNS.names]):
            key = sample_key(self.name, *json.loads(row["identity"]))
            yield NegativeCaption(key=key, group=group, split=self.split, **row)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each with its scores, ``no-text`` where a text is empty, or ``score-not-finite``.

        Raises `shards.contracts.OutOfMemory` when a pass does not fit, `BuildFailed` when a model does not, and
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
        """What each scorer gives for texts, by its kind."""
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
        return [(settings, self._load(settings)) for settings in self.source.scorers]

    def _load(self, settings: ScorerSettings) -> Scorer:
        from twinset.models.device import GPU, load_within_memory

        device = "cpu" if self.source.device == "cpu" else GPU
        return load_within_memory(f"the scorer {settings.kind}", lambda: settings.open(device))


def _scores(scorer: ScorerSettings, found: Scored, first: int, second: int) -> dict[str, float | None]:
    """Scores by column. first, second: places of caption and negative."""
    if scorer.of_pairs:
        return {scorer.score: float(found.values[first].astype(np.float64) @ found.values[second].astype(np.float64))}
    return {name: float(found.values[place]) for name, place in zip(scorer.columns(), (first, second), strict=True)}
