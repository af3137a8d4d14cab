"""Plans the negative captions that are selected from a stage of scores, and copies them with a prompt each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise, zip_longest
from typing import cast

import numpy as np
import pyarrow as pa

from twinset.generators.negative_captions.prompts import prompt_of
from twinset.generators.negative_captions.scored import SCORED_COLUMNS, ScoredCaption, scores_of
from twinset.generators.selection.report import reports_of
from twinset.generators.selection.rules import Step, select
from twinset.generators.selection.scored import Scored, load_scored
from twinset.generators.selection.source import SelectedNegatives
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import sample_key
from twinset.shards.contracts import EXAMPLES, Generator, LeftOut
from twinset.shards.earlier import Earlier
from twinset.shards.kinds.samples import TableRows


class SelectionGenerator(Generator[SelectedNegatives]):
    """Plans a row for each negative caption that is selected, with the identity that it has in the earlier table."""

    version = 1
    candidate = ScoredCaption
    libraries = ("numpy",)
    columns = pa.schema([*SCORED_COLUMNS, pa.field("prompt", pa.string(), nullable=False)])

    def inputs(self) -> str:
        """Digest of the earlier table."""
        return self._scores.digest

    def reports(self) -> Mapping[str, bytes]:
        """``funnel.json``, ``gaps.json`` and ``attacks.json`` (`generators.selection.report`)."""
        return reports_of(self.source, self._scored, self._steps)

    def plan(self) -> Iterator[ScoredCaption]:
        """Selected rows in the order of the earlier table.

        Raises `WrongUse` when that lacks scores that the rules need, or nothing is left.
        """
        self.excluded = self._left_out()
        for batch in self._scores.batches(["identity", *SCORED_COLUMNS.names], self._steps[-1].kept):
            for row in batch.to_pylist():
                key = sample_key(self.name, *json.loads(row["identity"]))
                yield ScoredCaption(key=key, group=key, split=self.split, **{**row, **scores_of(row)})

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        """The planned rows and the prompt of each."""
        for one in cast(Sequence[ScoredCaption], candidates):
            yield TableRows(one.key, [{**one.row(), "prompt": prompt_of(one.negative_caption, self.source.suffix)}])

    @cached_property
    def _scores(self) -> Earlier:
        return self.context.earlier(self.source.scores)

    @cached_property
    def _scored(self) -> Scored:
        return load_scored(self._scores, self.source, self.name)

    @cached_property
    def _steps(self) -> list[Step]:
        return select(self._scored, self._scores, self.source, self.seed, self.name)

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
        named = (one for batch in self._scores.batches(["identity"], chosen) for one in batch[0].to_pylist())
        identities = dict(zip(np.flatnonzero(chosen).tolist(), named, strict=True)) if shown else {}
        found = LeftOut()
        for reason, row in shown:
            found.add(reason, f"{self.source.scores} {identities[row]}")
        for reason, rows in lost.items():
            if len(rows):
                found[reason] = len(rows)
        return found
