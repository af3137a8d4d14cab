"""The scored negative captions of an earlier stage, as columns of numbers, and the rules that select among them.

Both sets of rules, the authors' code and the paper, end in adversarial refinement (`generators.selection.refinement`),
pooled over kinds. Before it:

* published (BiVLC's code): similarity below 0.999; then each scorer's quantile of the kind, all of which must be
  reached; then pooled over kinds a full stop at the very end, more than ten characters, the first of equal prompts.
* paper (BiVLC, section 5.2): step 1 takes "the top 35 percentile, according to the combined score of both models",
  here the mean, of each kind; step 2 removes "duplicate negative captions, captions in the form of questions, and
  generations that do not end with a final punctuation mark". It has no step of similarity and no least length.

Equal captions pass the same tests, so whether duplicates are removed before or after these makes no difference.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.blind_attacks import COLUMNS, LENGTHS, NEGATIVE, gaps_of, kinds_of, numbers_of, scores_among
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.selection.refinement import Bools, Floats, ranks_of, reach_of, refined
from twinset.generators.selection.source import SelectedNegatives, remedy
from twinset.shards.finished_stage import FinishedStage

LEAST_CHARACTERS = 10  # a negative caption must have more (BiVLC as released)

#: Tests of negative captions: of the released code untrimmed, of the paper without spaces at the end.
FLAGS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "full-stop": lambda texts: pc.ends_with(texts, "."),
    "long": lambda texts: pc.greater(pc.utf8_length(texts), LEAST_CHARACTERS),
    "question": lambda texts: pc.ends_with(pc.utf8_rtrim_whitespace(texts), "?"),
    "final-punctuation": lambda texts: pc.match_substring_regex(texts, r"[.!]\s*$"),
}


@dataclass(frozen=True, slots=True)
class Scored:
    """Every negative caption, one entry each in every array, in the order of the stage.

    kinds: names, in the order of the papers' tables, others after them. kind: of each, a place in ``kinds``.
    negative: scores of negative captions, by name; similarity: of both captions. gaps: as
    `generators.blind_attacks.gaps_of`. NaN where a score is absent or not finite.
    flags: what `FLAGS` find.
    """

    kinds: list[str]
    kind: NDArray[np.int32]
    negative: dict[str, Floats]
    similarity: Floats
    gaps: dict[str, Floats]
    flags: dict[str, Bools]

    def __len__(self) -> int:
        return len(self.kind)

    def by_kind(self, chosen: Bools) -> dict[str, int]:
        """How many of each kind are chosen."""
        return dict(zip(self.kinds, np.bincount(self.kind[chosen], minlength=len(self.kinds)).tolist(), strict=True))


def load_scored(earlier: FinishedStage, source: SelectedNegatives, name: str, numbers: Sequence[str]) -> Scored:
    """Read what a selection needs of a stage of scores, as a stream; memory: some 80 bytes a row.

    Args:
        earlier: the stage of scores.
        source: settings of the selection. name: of its stage, for messages. numbers: columns of scores.

    Raises:
        WrongUse: the stage is empty, or lacks scores that the settings ask for.
    """
    codes: dict[str, int] = {}
    parts: dict[str, list[NDArray[Any]]] = {}
    for columns in _batches(earlier, codes, numbers):
        for column, values in columns.items():
            parts.setdefault(column, []).append(values)
    if not parts:
        raise WrongUse(f"{earlier.where}: has no rows to select from; name other negative captions")

    def whole(column: str) -> NDArray[Any]:
        return np.concatenate(parts.pop(column))

    ordered = [*(kind for kind in KINDS if kind in codes), *sorted(codes.keys() - KINDS.keys())]
    scores = scores_among(numbers)
    place = np.empty(len(ordered), np.int32)
    place[[codes[kind] for kind in ordered]] = np.arange(len(ordered))
    found = Scored(
        kinds=ordered,
        kind=place[whole("kind")],
        negative={score: whole(f"negative {score}") for score in scores},
        similarity=whole("similarity"),
        gaps={one: whole(f"gap {one}") for one in (*LENGTHS, *scores)},
        flags={flag: whole(flag) for flag in FLAGS},
    )
    _refuse_absent(found, earlier.where, source, name)
    return found


def _batches(
    earlier: FinishedStage, codes: dict[str, int], numbers: Sequence[str]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Arrays of each batch by name; names of kinds that are new get the next of ``codes``."""
    for batch in earlier.batches((*COLUMNS, *numbers)):
        negatives, kinds = batch["negative_caption"], kinds_of(batch["type"], batch["subtype"]).dictionary_encode()
        known = [codes.setdefault(kind, len(codes)) for kind in kinds.dictionary.to_pylist()]
        found = {"kind": np.array(known, np.int32)[kinds.indices.to_numpy()]}
        for score in scores_among(numbers):
            found[f"negative {score}"] = numbers_of(batch[score + NEGATIVE])
        found["similarity"] = numbers_of(batch["similarity"])
        for name, gaps in gaps_of(batch).items():
            # Exact: captions are far shorter than 2**24.
            found[f"gap {name}"] = gaps.astype(np.float32) if name in LENGTHS else gaps
        for flag, test in FLAGS.items():
            found[flag] = test(negatives).to_numpy(zero_copy_only=False)
        yield found


def _refuse_absent(scored: Scored, where: str, source: SelectedNegatives, name: str) -> None:
    """Raise `WrongUse` for scores that no row has: the earlier stage was not asked for them."""
    by_setting = {"quality": scored.negative, "refine": scored.gaps, "similarity": {"similarity": scored.similarity}}
    for setting, score in source.scores_needed():
        if np.isnan(by_setting[setting][score]).all():
            raise WrongUse(
                f"{name}: source.{setting} needs scores that {where} lacks: its {score} is no number in any row. "
                f"{remedy(setting, score)}"
            )


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
        reaches = [reach_of(axis) for axis in source.refine]
        balanced[rows] = refined(gaps, reaches, source.grid, ranks_of(seed, stage, keys))
        narrow("unbalanced", balanced)
    return steps


def _complete(scored: Scored, source: SelectedNegatives) -> Bools:
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
