"""Blind attacks on text pairs: how often the true caption is told from the negative one without the image.

An attack compares one number of both captions, such as their length or a language model's score. A benchmark on which
one is right far from half of the time can be solved in part without looking (SugarCrepe, section 3.1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.manifests.markdown import table

#: Words of letters and digits, as `generators.negative_captions.changes.words` finds them, in the syntax of RE2.
WORD = r"[\pL\pN_]+(?:[-'’][\pL\pN_]+)*"

#: Of each number that both captions have: what is guessed to be true where it differs, by the sign of the gap.
ATTACKS = {
    "characters": {-1: "shorter", 1: "longer"},
    "words": {-1: "fewer words", 1: "more words"},
    "vera": {1: "higher VERA"},
    "cola": {1: "higher CoLA"},
    "lm": {1: "higher language-model score"},
}
SCORERS = ("vera", "cola", "lm")
#: Columns that a table needs for all attacks.
COLUMNS = (
    *("caption", "negative_caption", "type", "subtype"),
    *(f"{scorer}_{side}" for scorer in SCORERS for side in ("caption", "negative")),
)
ALL, UNKNOWN = "all", "unknown"

Gaps = NDArray[np.float64]
#: Pairs by the gap's sign: of the smaller number, of equal ones, of the larger one at the true caption.
Signs = Mapping[str, Mapping[str, Sequence[int]]]


def lengths(captions: pa.Array) -> dict[str, NDArray[np.float64]]:
    """``characters`` and ``words`` of captions."""
    found = {"characters": pc.utf8_length(captions), "words": pc.count_substring_regex(captions, WORD)}
    return {name: np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for name, column in found.items()}


def length_gaps(captions: pa.Array, negatives: pa.Array) -> dict[str, Gaps]:
    """Gaps in ``characters`` and ``words``: of each caption, less of its negative."""
    of_negatives = lengths(negatives)
    return {name: numbers - of_negatives[name] for name, numbers in lengths(captions).items()}


def score_gaps(captions: pa.Array, negatives: pa.Array) -> Gaps:
    """Gaps of a score; NaN where either is null or not finite."""
    return numbers_of(captions) - numbers_of(negatives)


def gaps_of(batch: pa.RecordBatch) -> dict[str, Gaps]:
    """All gaps of a batch of `COLUMNS`, by the names of `ATTACKS`."""
    gaps = length_gaps(batch["caption"], batch["negative_caption"])
    for scorer in SCORERS:
        gaps[scorer] = score_gaps(batch[f"{scorer}_caption"], batch[f"{scorer}_negative"])
    return gaps


def numbers_of(scores: pa.Array) -> NDArray[np.float64]:
    """A column of numbers, NaN where one is null or not finite."""
    numbers = np.asarray(scores.to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def kinds_of(types: pa.Array, subtypes: pa.Array) -> pa.Array:
    """Names of kinds, such as ``replace_obj``; `UNKNOWN` where neither is told."""
    joined = pc.binary_join_element_wise(types, subtypes, "_")
    return pc.if_else(pc.equal(joined, "_"), UNKNOWN, joined)


class SignCounts:
    """Counts gaps by kind and sign, batch by batch."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, NDArray[np.int64]]] = {}

    def add(self, gaps: Mapping[str, Gaps], codes: NDArray[Any], kinds: Sequence[str]) -> None:
        """Count a batch.

        Args:
            gaps: by the names of `ATTACKS`, NaN where there is none.
            codes: kind of each pair, a place in ``kinds``.
            kinds: names.
        """
        for name, values in gaps.items():
            there = ~np.isnan(values)
            places = codes[there].astype(np.int64) * 3 + np.sign(values[there]).astype(np.int64) + 1
            found = np.bincount(places, minlength=3 * len(kinds)).reshape(-1, 3)
            of_kind = self._counts.setdefault(name, {})
            for kind, counts in zip(kinds, found, strict=True):
                if counts.any():
                    of_kind[kind] = of_kind.get(kind, np.zeros(3, np.int64)) + counts

    def signs(self) -> dict[str, dict[str, list[int]]]:
        """What was counted: by attack and kind, `ALL` first; numbers that no pair has are left out."""
        return {
            name: {ALL: sum(of_kind.values(), np.zeros(3, np.int64)).tolist()}
            | {kind: counts.tolist() for kind, counts in of_kind.items()}
            for name, of_kind in self._counts.items()
            if of_kind
        }


def accuracy(signs: Sequence[int], side: int) -> float:
    """Share (0-1) of pairs of which the attack is right; of equal numbers it is right of half.

    side: 1 where the caption of the larger number is guessed to be true, -1 where that of the smaller.
    """
    right = signs[2] if side > 0 else signs[0]
    return (right + signs[1] / 2) / sum(signs)


def attack_table(signs: Signs, kinds: Sequence[str]) -> str:
    """A Markdown table of accuracies and of the share of ties, over all and by kind; empty without pairs."""
    rows = []
    for name, sides in ATTACKS.items():
        for side, said in sides.items() if name in signs else ():
            cells = [
                f"{accuracy(signs[name][kind], side):.1%}" if kind in signs[name] else "–" for kind in (ALL, *kinds)
            ]
            every = signs[name][ALL]
            rows.append((said, cells[0], f"{every[1] / sum(every):.1%}", *cells[1:]))
    heads = ("guessed true: the caption that has", "all", "ties", *(kind.replace("_", " ") for kind in kinds))
    return table(heads, rows) if rows else ""
