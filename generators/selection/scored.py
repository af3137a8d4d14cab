"""The scored negative captions of an earlier stage, as columns of numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.generators.blind_attacks import COLUMNS, LENGTHS, NEGATIVE, gaps_of, kinds_of, numbers_of, scores_among
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.selection.refinement import Bools, Floats
from twinset.generators.selection.source import SelectedNegatives, remedy
from twinset.manifests.errors import WrongUse
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
