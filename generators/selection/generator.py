"""Plans the negative captions that are selected from a stage of scores, and copies them with a prompt each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise, zip_longest
from typing import Any, cast

import numpy as np
import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.parts import EXAMPLES, LeftOut
from twinset.generators.blind_attacks import LENGTHS, SignCounts
from twinset.generators.negative_captions.kinds import ScoredCaption, columns_of, scored_schema, scores_in, with_scores
from twinset.generators.negative_captions.prompts import prompt_of
from twinset.generators.selection.refinement import Bools, reach_of
from twinset.generators.selection.scored import Scored, Step, load_scored, select
from twinset.generators.selection.source import AFTER, ATTACKS, BEFORE, EVERY, FUNNEL, GAPS, SelectedNegatives
from twinset.shards.contracts import Context, StageGenerator

BINS = 100  # of a histogram of gaps
MOST_WORDS = 20  # gaps in words that are told apart in a histogram


class SelectionGenerator(StageGenerator[SelectedNegatives]):
    """Plans a row for each negative caption that is selected, with the identity that it has in the earlier table."""

    version = 1
    libraries = ("numpy",)

    def __init__(self, source: SelectedNegatives, context: Context) -> None:
        super().__init__(source, context)
        self._numbers = columns_of(score for setting, score in source.scores_needed() if score not in LENGTHS)
        self._schema = scored_schema(self._numbers)
        self.columns = pa.schema([*self._schema, pa.field("prompt", pa.string(), nullable=False)])
        self._candidate = self.candidate = with_scores(ScoredCaption, self._numbers)

    def reports(self) -> Mapping[str, bytes]:
        """``funnel.json``, ``gaps.json`` and ``attacks.json``."""
        return reports_of(self.source, self._scored, self._steps)

    def plan(self) -> Iterator[ScoredCaption]:
        """Selected rows in the order of the earlier table.

        Raises `WrongUse` when that lacks scores that the rules need, or nothing is left.
        """
        self.excluded = self._left_out()
        for batch in self.earlier.batches(["identity", *TERMS, *self._schema.names], self._steps[-1].kept):
            for row in batch.to_pylist():
                identified = self.identified(*json.loads(row.pop("identity")), shows=(Terms.taken(row),))
                yield self._candidate(**identified, **{**row, **scores_in(row, self._numbers)})

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for one in cast(Sequence[ScoredCaption], candidates):
            row = {name: getattr(one, name) for name in self._schema.names}
            yield TableRows(one.key, [{**row, "prompt": prompt_of(one.negative_caption, self.source.suffix)}])

    @cached_property
    def _scored(self) -> Scored:
        return load_scored(self.earlier, self.source, self.name, self._numbers)

    @cached_property
    def _steps(self) -> list[Step]:
        return select(self._scored, self.earlier, self.source, self.seed, self.name)

    def _left_out(self) -> LeftOut:
        """What each step leaves out; examples are taken in turn from all steps."""
        every = Step("", np.ones(len(self._scored), dtype=np.bool_))
        lost = {
            after.reason: np.flatnonzero(before.kept & ~after.kept) for before, after in pairwise([every, *self._steps])
        }
        turns = zip_longest(*([(reason, int(row)) for row in rows[:EXAMPLES]] for reason, rows in lost.items()))
        shown = list(islice((one for turn in turns for one in turn if one is not None), EXAMPLES))
        chosen = np.zeros(len(self._scored), dtype=np.bool_)
        chosen[[row for _, row in shown]] = True
        named = (one for batch in self.earlier.batches(["identity"], chosen) for one in batch[0].to_pylist())
        identities = dict(zip(np.flatnonzero(chosen).tolist(), named, strict=True)) if shown else {}
        found = LeftOut()
        for reason, row in shown:
            found.add(reason, f"{self.source.scores} {identities[row]}")
        for reason, rows in lost.items():
            if len(rows):
                found[reason] = len(rows)
        return found


def reports_of(source: SelectedNegatives, scored: Scored, steps: Sequence[Step]) -> dict[str, bytes]:
    """The JSON files of a selection.

    ``funnel.json``: rules; kinds, in order; steps: reason and what is kept by kind, all rows first.
    ``gaps.json``: by score, edges of bins and counts of gaps (caption less negative) at three points: all, before
    refinement, selected. ``attacks.json``: kinds, and at the same points pairs by attack, kind and the gap's sign
    (`generators.blind_attacks.SignCounts`).
    """
    every = np.ones(len(scored), dtype=np.bool_)
    before = next((step.kept for step in reversed(steps) if step.reason != "unbalanced"), every)
    points = {EVERY: every, BEFORE: before, AFTER: steps[-1].kept}
    funnel = [("", every), *((step.reason, step.kept) for step in steps)]
    contents: dict[str, Any] = {
        FUNNEL: {
            "rules": source.rules,
            "kinds": scored.kinds,
            "steps": [{"reason": reason, "kept": scored.by_kind(kept)} for reason, kept in funnel],
        },
        GAPS: _gaps(scored, points),
        ATTACKS: {"kinds": scored.kinds, **{name: _signs(scored, chosen) for name, chosen in points.items()}},
    }
    return {name: canonical_json(content) + b"\n" for name, content in contents.items()}


def _gaps(scored: Scored, points: Mapping[str, Bools]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, gaps in scored.gaps.items():
        if name == "characters" or np.isnan(gaps).all():
            continue
        reach = reach_of(name)
        edges = np.linspace(-reach, reach, BINS + 1) if reach else np.arange(-MOST_WORDS - 0.5, MOST_WORDS + 1)
        lowest, highest = (-reach, reach) if reach else (-MOST_WORDS, MOST_WORDS)
        counts = {
            point: np.histogram(np.clip(gaps[chosen & ~np.isnan(gaps)], lowest, highest), edges)[0].tolist()
            for point, chosen in points.items()
        }
        found[name] = {"edges": [round(edge, 4) for edge in edges.tolist()], **counts}
    return found


def _signs(scored: Scored, chosen: Bools) -> dict[str, dict[str, list[int]]]:
    counts = SignCounts()
    counts.add({name: gaps[chosen] for name, gaps in scored.gaps.items()}, scored.kind[chosen], scored.kinds)
    return counts.signs()
