"""The rules that select negative captions, step by step: as the authors' code does, and as the paper says.

Both end in adversarial refinement (`generators.selection.refinement`), pooled over kinds. Before it:

* published (BiVLC's code): similarity below 0.999; then each scorer's quantile of the kind, all of which must be
  reached; then pooled over kinds a full stop at the very end, more than ten characters, the first of equal prompts.
* paper (BiVLC, section 5.2): step 1 takes "the top 35 percentile, according to the combined score of both models",
  here the mean, of each kind; step 2 removes "duplicate negative captions, captions in the form of questions, and
  generations that do not end with a final punctuation mark". It has no step of similarity and no least length.

Equal captions pass the same tests, so whether duplicates are removed before or after these makes no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinset.generators.selection.refinement import Bools, Floats, axis_of, ranks_of, refined
from twinset.generators.selection.scored import Scored
from twinset.generators.selection.source import SelectedNegatives
from twinset.manifests.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage


@dataclass(frozen=True, slots=True)
class Step:
    """What is left after a step. reason: of what it leaves out (`SelectedNegatives.reasons`). kept: one entry a row."""

    reason: str
    kept: Bools


def select(scored: Scored, earlier: FinishedStage, source: SelectedNegatives, seed: int, stage: str) -> list[Step]:
    """All steps in order; the rows that the last one keeps are selected.

    How the stage of scores was cut into shards makes no difference: equal prompts are ordered as that stage was
    planned, and which pairs of a crowded cell remain is decided by seed, stage and key. Raises `WrongUse`: nothing is
    left after a step.
    """
    steps: list[Step] = []

    def narrow(reason: str, passed: Bools) -> Bools:
        before = steps[-1].kept if steps else np.ones(len(scored), dtype=np.bool_)
        kept = before & passed
        if not kept.any():
            raise WrongUse(_nothing_left(stage, earlier.where, reason, int(before.sum()), source))
        steps.append(Step(reason, kept))
        return kept

    kept = narrow("no-score", _complete(scored, source))
    if source.similarity is not None:
        kept = narrow("same-meaning", scored.similarity < source.similarity)
    qualities = [scored.negative[scorer] for scorer in source.quality]
    if source.rules == "paper":
        qualities = [np.mean(qualities, axis=0)]
    narrow("low-score", _reach_quantiles(scored, kept, qualities, source.quantile))
    tests = {"no-full-stop": "full-stop", "too-short": "long"}
    if source.rules == "paper":
        tests = {"question": "question", "no-final-punctuation": "final-punctuation"}
    for reason, flag in tests.items():
        kept = narrow(reason, scored.flags[flag] != (flag == "question"))
    kept = narrow("repeated", _first_of_equal(scored, kept, earlier, without_stops=source.rules == "published"))
    if source.refine:
        rows = np.flatnonzero(kept)
        keys = (batch[0] for batch in earlier.batches(["key"], kept))
        gaps = [scored.gaps[axis][rows].astype(np.float64) for axis in source.refine]
        balanced = np.zeros(len(scored), dtype=np.bool_)
        axes = [axis_of(axis) for axis in source.refine]
        balanced[rows] = refined(gaps, axes, source.grid, ranks_of(seed, stage, keys))
        narrow("unbalanced", balanced)
    return steps


def _complete(scored: Scored, source: SelectedNegatives) -> Bools:
    """Whether all numbers are there that the rules look at."""
    asked = [scored.negative[scorer] for scorer in source.quality] + [scored.gaps[axis] for axis in source.refine]
    if source.similarity is not None:
        asked.append(scored.similarity)
    return np.asarray(np.all([np.isfinite(values) for values in asked], axis=0))


def _reach_quantiles(scored: Scored, kept: Bools, qualities: Sequence[Floats], quantile: float) -> Bools:
    """Whether each quality reaches its quantile of the row's kind; linear between ranks, as pandas' default."""
    passed = np.ones(len(scored), dtype=np.bool_)
    for kind in range(len(scored.kinds)):
        here = scored.kind == kind
        among = kept & here
        for values in qualities if among.any() else ():
            passed &= ~here | (values >= float(np.quantile(values[among], quantile)))
    return passed


def _first_of_equal(scored: Scored, kept: Bools, earlier: FinishedStage, without_stops: bool) -> Bools:
    """Whether a row is the first of those with its negative caption: kind by kind, in the order of the stage.

    without_stops: compare captions without full stops, as prompts are.
    """
    texts = [pa.array([], pa.large_string())]
    for batch in earlier.batches(["negative_caption"], kept):
        column = batch[0].cast(pa.large_string())
        texts.append(pc.replace_substring(column, ".", "") if without_stops else column)
    codes = pa.concat_arrays(texts).dictionary_encode().indices.to_numpy()
    rows = np.flatnonzero(kept)
    order = np.argsort(scored.kind[rows], kind="stable")
    _, first = np.unique(codes[order], return_index=True)
    found = np.zeros(len(scored), dtype=np.bool_)
    found[rows[order[first]]] = True
    return found


_REMEDIES = {
    "no-score": "see which scores {where} has, and name these in quality and refine",
    "same-meaning": "raise similarity, or set it to null",
    "low-score": "lower quantile, now {quantile:g}",
    "no-full-stop": "bring the captions into one format first, with negative-prompts or rules: paper",
    "too-short": "look at its negative captions",
    "question": "look at its negative captions",
    "no-final-punctuation": "bring the captions into one format first, with negative-prompts",
    "unbalanced": "no gap has an opposite one; lower grid, now {grid}, lower quantile, or set refine to []",
}


def _nothing_left(stage: str, where: str, reason: str, before: int, source: SelectedNegatives) -> str:
    remedy = _REMEDIES[reason].format(where=where, quantile=source.quantile, grid=source.grid)
    return (
        f"{stage}: of the {before:,} negative captions of {where} that came so far, every one is left out as "
        f"{reason} ({source.reasons[reason]}); {remedy}"
    )
