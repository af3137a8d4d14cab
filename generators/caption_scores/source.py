"""Scores of captions and their negatives, as a table for the selection of negatives (BiVLC, Appendix B)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, naming
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import Need, StageName
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS, CaptionScorer, Scorer, ScorerSettings
from twinset.generators.negative_captions.kinds import COLUMNS, columns_of, scored_schema
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.models.device import OnDevice, check_installed
from twinset.shards.contracts import RowCandidate, RowStage

ROWS = 1 << 16  # negatives of which each distinct text is scored once: all of a shard, as a rule
TEXTS = 32  # of a pass, less where memory runs out
LONGEST = 2000  # characters of a text; models read some hundred and cut the rest


class CaptionScores(OnDevice, RowStage):
    """Scores of each caption and of its negatives.

    negatives: the stage of negative captions, or the folder of a finished one. scorers: one of each kind at most;
    columns of twinset's other ones are null. device, threads: as `OnDevice`. licence: of the captions.

    A row a negative caption with the identity that it has in the earlier table; those of a caption are a group. The
    last bits of a score depend on device, threads and the other texts of the shard.
    """

    kind: Literal["caption-scores"]
    negatives: StageName
    scorers: tuple[CaptionScorer, ...] = Field(min_length=1)
    licence: str = ""

    version = 3
    isolation = "process"  # torch's number of threads is its process's
    micro_batch: ClassVar[int] = ROWS
    paper = BIVLC
    group = "caption"
    verb = "scored from"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "caption-scores")

    @field_validator("scorers")
    @classmethod
    def _one_of_each(cls, scorers: tuple[CaptionScorer, ...]) -> tuple[CaptionScorer, ...]:
        if len({scorer.score for scorer in scorers}) < len(scorers):
            raise ValueError("two scorers of one kind would fill one column; name one, or two stages")
        return scorers

    @property
    def scores_given(self) -> tuple[str, ...]:
        return tuple(scorer.score for scorer in self.scorers)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            for number, scorer in enumerate(self.scorers):
                with naming(f"{key}.scorers.{number}.model"):
                    scorer.weights()
                if "media" in needs:
                    check_installed(f"{key}.scorers.{number}", scorer.libraries(), self.extra)

    @cached_property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]  # with the scores that are asked for
        return scored_schema(columns_of(self.scores_given))

    def weights(self) -> Mapping[str, str]:
        return {scorer.kind: digest for scorer in self.scorers if (digest := scorer.weights())}

    def runs_on(self) -> str:
        return self.device_name("source.device")

    def plan(self) -> Iterator[RowCandidate]:
        """Rows of one caption after the other; captions in the order in which they come first."""
        import polars as pl

        batches = [pl.DataFrame(batch) for batch in self.earlier().batches(("identity", *TERMS, *COLUMNS.names))]
        if not batches:
            return
        rows = pl.concat(batches).with_row_index("row")
        rows = rows.with_columns(first=pl.col("row").min().over("caption")).sort("first", "row").drop("first", "row")
        for row in rows.iter_rows(named=True):
            identity, shows = json.loads(row.pop("identity")), (Terms(*map(row.pop, TERMS)),)
            group = f"caption-{blake2b(row['caption'].encode(), digest_size=8).hexdigest()}"
            text = canonical_json(row).decode()
            yield RowCandidate(**self.identified(*identity, group=group, shows=shows), row=text)

    def rows(self, batch: Sequence[RowCandidate]) -> Iterator[list[dict[str, Any]] | Rejected]:
        """A row each with its scores, or why it has none.

        Raises `contracts.parts.OutOfMemory` when a pass does not fit, `BuildFailed` when a model does not, and
        `WrongUse` when a model's files cannot be used.
        """
        pairs = [(candidate.values["caption"], candidate.values["negative_caption"]) for candidate in batch]
        texts = [text for pair in pairs for text in pair if text.strip() and len(text) <= LONGEST]
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        values, columns = self._scores([*place]) if place else [], columns_of(self.scores_given)
        for candidate, pair in zip(batch, pairs, strict=True):
            if not all(text in place for text in pair):
                yield Rejected(candidate.key, "text-too-long" if all(map(str.strip, pair)) else "no-text")
                continue
            scores: dict[str, float | None] = dict.fromkeys(columns)
            for scorer, of_texts in values:
                sides = of_texts[[place[text] for text in pair]].astype(np.float64)
                numbers = [float(sides[0] @ sides[1])] if scorer.of_pairs else sides.tolist()
                scores |= dict(zip(scorer.columns(), numbers, strict=True))
            if wrong := [name for name, value in scores.items() if value is not None and not np.isfinite(value)]:
                yield Rejected(candidate.key, "score-not-finite", ", ".join(wrong))
            else:
                yield [{**candidate.values, **scores}]

    def _scores(self, texts: Sequence[str]) -> list[tuple[ScorerSettings, NDArray[Any]]]:
        from twinset.models.device import inference, within_memory

        size, scores = max(1, TEXTS * self.batch_size() // ROWS), []
        with inference(self.threads):
            for settings, scorer in self.opened_scorers:
                values = within_memory(partial(scorer, texts, size))
                if len(values) != len(texts):
                    problem = f"{len(values)} scores for {len(texts)} texts; its package must give one each"
                    raise BuildFailed(f"{CAPTION_SCORERS.named(settings.kind)}: {problem}")
                scores.append((settings, values))
        return scores

    @cached_property
    def opened_scorers(self) -> list[tuple[ScorerSettings, Scorer]]:
        """Each scorer with its network, loaded."""
        from twinset.models.device import GPU, load_within_memory

        device = "cpu" if self.device == "cpu" else GPU
        opening = ((scorer, f"the scorer {scorer.kind}", partial(scorer.open, device)) for scorer in self.scorers)
        return [(scorer, load_within_memory(name, opens)) for scorer, name, opens in opening]
