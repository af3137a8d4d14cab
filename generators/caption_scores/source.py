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
from pydantic import Field, field_validator

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, naming
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, StageName
from twinset.generators.caption_scores.scorers.scorer import (
    CAPTION_SCORERS,
    CaptionScorer,
    Scored,
    Scorer,
    ScorerSettings,
    scorer_of,
)
from twinset.generators.negative_captions.kinds import COLUMNS, columns_of, scored_schema
from twinset.generators.papers import BIVLC
from twinset.models.device import OnDevice, check_installed
from twinset.shards.contracts import RowCandidate, RowStage

ROWS = 1 << 16  # negatives of which each distinct text is scored once: all of a shard, as a rule


class CaptionScores(OnDevice, RowStage):
    """Scores of each caption and of its negatives.

    negatives: the stage of negative captions, or the folder of a finished one. scorers: one of each kind at most;
    columns of twinset's other ones are null. device, threads: as `OnDevice`. licence: of the captions.

    A row a negative caption with the identity that it has in the earlier table; those of a caption are a group. The
    last bits of a score depend on device, threads and the texts of its pass. Which these are, the shard decides: texts
    are sorted by themselves before they are cut into passes.
    """

    kind: Literal["caption-scores"]
    negatives: StageName
    scorers: tuple[CaptionScorer, ...] = Field(min_length=1)
    licence: str = ""

    version = 2
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
        scores = [one.score for one in scorers]
        if repeated := next((one.kind for one in scorers if scores.count(one.score) > 1), None):
            raise ValueError(f"two scorers of kind {repeated} would fill one column; name one, or two stages")
        for one in scorers:
            if (kind := scorer_of(one.score)[0]) != one.kind:
                raise ValueError(
                    f"{one.kind} calls its score {one.score!r}, as {kind} does; its package must rename it"
                )
        return scorers

    @property
    def scores_given(self) -> tuple[str, ...]:
        return tuple(one.score for one in self.scorers)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            for number, scorer in enumerate(self.scorers):
                with naming(f"{key}.scorers.{number}.model"):
                    scorer.weights()
                if "media" in needs:
                    check_installed(f"{key}.scorers.{number}", scorer.libraries(), scorer.extra)

    @cached_property
    def score_columns(self) -> tuple[str, ...]:
        """Those of every table, and after them those of other packages' scorers."""
        return columns_of(self.scores_given)

    @cached_property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]  # with the scores that are asked for
        """``truncated``: scores of which only the beginning of the caption or of the negative was read."""
        return pa.schema([*scored_schema(self.score_columns), pa.field("truncated", pa.string(), nullable=False)])

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
            identity, shows = json.loads(row.pop("identity")), (Terms.taken(row),)
            group = f"caption-{blake2b(row['caption'].encode(), digest_size=8).hexdigest()}"
            text = canonical_json(row).decode()
            yield RowCandidate(**self.identified(*identity, group=group, shows=shows), row=text)

    def rows(self, batch: Sequence[RowCandidate]) -> Iterator[list[dict[str, Any]] | Rejected]:
        """A row each with its scores, ``no-text`` where a text is empty, or ``score-not-finite``.

        Raises `contracts.parts.OutOfMemory` when a pass does not fit, `BuildFailed` when a model does not, and
        `WrongUse` when a model's files cannot be used.
        """
        pairs = [(candidate.values["caption"], candidate.values["negative_caption"]) for candidate in batch]
        texts = list(dict.fromkeys(text for pair in pairs if all(map(str.strip, pair)) for text in pair))
        place = {text: number for number, text in enumerate(texts)}
        scored = self._scored(texts) if texts else []
        for candidate, pair in zip(batch, pairs, strict=True):
            if not all(text in place for text in pair):
                yield Rejected(candidate.key, "no-text")
                continue
            places = [place[text] for text in pair]
            scores: dict[str, float | None] = dict.fromkeys(self.score_columns)
            for scorer, values in scored:
                sides = values.values[places].astype(np.float64)
                numbers = [float(sides[0] @ sides[1])] if scorer.of_pairs else sides.tolist()
                scores |= dict(zip(scorer.columns(), numbers, strict=True))
            if wrong := [name for name, value in scores.items() if value is not None and not np.isfinite(value)]:
                yield Rejected(candidate.key, "score-not-finite", ", ".join(wrong))
                continue
            cut = [scorer.score for scorer, values in scored if values.truncated[places].any()]
            yield [{**candidate.values, **scores, "truncated": " ".join(cut)}]

    def _scored(self, texts: Sequence[str]) -> list[tuple[ScorerSettings, Scored]]:
        from twinset.models.device import inference, within_memory

        given = []
        with inference(self.threads):
            for settings, scorer in self.opened_scorers:
                size = max(1, settings.micro_batch * self.batch_size() // ROWS)
                scored = within_memory(partial(scorer, texts, size))
                if not len(scored.values) == len(scored.truncated) == len(texts):
                    raise BuildFailed(
                        f"{CAPTION_SCORERS.named(settings.kind)}: {len(scored.values)} scores and "
                        f"{len(scored.truncated)} marks of what was cut for {len(texts)} texts; its package must give "
                        "one each a text"
                    )
                given.append((settings, scored))
        return given

    @cached_property
    def opened_scorers(self) -> list[tuple[ScorerSettings, Scorer]]:
        """Each scorer with its network, loaded."""
        from twinset.models.device import GPU, load_within_memory

        device = "cpu" if self.device == "cpu" else GPU
        opening = ((scorer, f"the scorer {scorer.kind}", partial(scorer.open, device)) for scorer in self.scorers)
        return [(scorer, load_within_memory(name, opens)) for scorer, name, opens in opening]
