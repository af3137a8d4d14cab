"""Blind attacks on text pairs: how often the true caption is told from the negative one without the image.

An attack compares one number of both captions, such as their length or a language model's score. A benchmark on which
one is right far from half of the time can be solved in part without looking (SugarCrepe, section 3.1).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.markdown import table
from twinset.generators.caption_scores.scorers.scorer import scorer_of

#: Words of letters and digits, as `generators.negative_captions.changes.words` finds them, in the syntax of RE2.
WORD = r"[\pL\pN_]+(?:[-'’][\pL\pN_]+)*"

#: Of each length that both captions have: what is guessed to be true where it differs, by the sign of the gap.
LENGTHS = {"characters": {-1: "shorter", 1: "longer"}, "words": {-1: "fewer words", 1: "more words"}}
#: Columns that a table needs for all attacks, besides those of its scores.
COLUMNS = ("caption", "negative_caption", "type", "subtype")
CAPTION, NEGATIVE = "_caption", "_negative"
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


def scores_among(columns: Iterable[str]) -> list[str]:
    """Names of the scores that columns hold, of the caption and of the negative each."""
    names = list(columns)
    ended = (name.removesuffix(CAPTION) for name in names if name.endswith(CAPTION))
    return [score for score in ended if score + NEGATIVE in names]


def gaps_of(batch: pa.RecordBatch) -> dict[str, Gaps]:
    """Gaps of a batch of `COLUMNS` and of scores: ``characters``, ``words``, and by score."""
    gaps = length_gaps(batch["caption"], batch["negative_caption"])
    for score in scores_among(batch.schema.names):
        gaps[score] = numbers_of(batch[score + CAPTION]) - numbers_of(batch[score + NEGATIVE])
    return gaps


def attacks_on(names: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Every guess by some numbers, lengths first: the number, the sign of its gap, and what is guessed to be true."""
    order = [*LENGTHS, *scores_among(TEXT_SCORES)]
    for name in sorted(names, key=lambda one: (order.index(one) if one in order else len(order), one)):
        for side, said in (LENGTHS.get(name) or {1: f"higher {title_of(name)}"}).items():
            yield name, side, said


def title_of(score: str) -> str:
    """Of a score, as cards name it; raises `UnknownKind` where no scorer here gives it."""
    return scorer_of(score)[1].title


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
            gaps: as `gaps_of`, NaN where there is none.
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
    for name, side, said in attacks_on(signs):
        cells = [f"{accuracy(signs[name][kind], side):.1%}" if kind in signs[name] else "–" for kind in (ALL, *kinds)]
        every = signs[name][ALL]
        rows.append((said, cells[0], f"{every[1] / sum(every):.1%}", *cells[1:]))
    heads = ("guessed true: the caption that has", "all", "ties", *(kind.replace("_", " ") for kind in kinds))
    return table(heads, rows) if rows else ""
