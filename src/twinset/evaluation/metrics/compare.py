"""Compares two tables of scores row by row: paired bootstrap of the difference, McNemar's test, Holm's correction."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import alike, interval, resampled
from twinset.evaluation.metrics.matching import Matchings
from twinset.evaluation.metrics.measure import ALL, APART
from twinset.evaluation.metrics.outcomes import Codes, Floats, ScoreKind, ratio
from twinset.evaluation.metrics.score_kinds import group_column, kinds_of
from twinset.evaluation.score_files.opening import Digests, Labels, ScoreFile, digests, open_scores
from twinset.generators.words_alone.guesses import sign_test


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of two tables, over the rows that both have.

    rows: ``all``, or a value of the asked columns. a, b: percent; difference: a - b, in percentage points.
    low, high: 95 % interval of the difference, paired bootstrap clustered by group; None for fewer than 2 groups.
    only_a, only_b: rows that only A, or only B, has right. p: McNemar's exact test of these two, which takes rows as
    independent. p_holm: p corrected for all lines of the table (Holm 1979).
    """

    rows: str
    figure: str
    n: int
    groups: int
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    only_a: int
    only_b: int
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two tables have in common and how they differ; only_in_a, only_in_b: rows that the other lacks."""

    n: int
    only_in_a: int
    only_in_b: int
    table: tuple[Compared, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """``{"n", "only_in_a", "only_in_b", "table": [{"rows", "figure", …}], "notes"}``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Rows:
    """codes: of each kind in turn."""

    keys: Digests
    codes: list[Codes]
    labels: NDArray[np.uint16]
    groups: Digests | None
    names: list[str]


def compare(
    a: pa.Table | str | Path,
    b: pa.Table | str | Path,
    by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    *,
    key: Sequence[str] | None = ("key",),
    group: str | None = None,
    figures: Sequence[str] = (),
) -> Comparison:
    """Compare two tables of scores of one kind; arguments as `evaluation.metrics.measure.measure`.

    Args:
        by, group: columns of A; B needs only its key and scores.
        key: columns that together identify a row in both; None: their rows are in the same order.
        figures: to compare; none: text, image and group, or accuracy, or recall, or the thresholds of grounding, and
            installed metrics.

    Raises:
        WrongUse: a key twice in a file, no key in common, tables of different kinds, a figure that they do not have.
    """
    files = open_scores(a), open_scores(b)
    found = kinds_of(files[0]), kinds_of(files[1])
    both = {type(one) for one in found[0]} & {type(one) for one in found[1]}
    kinds = [[kind for kind in one if type(kind) in both] for one in found]
    if not both:
        raise WrongUse(f"{files[0].where} and {files[1].where} have scores of different kinds; compare like with like")
    column = group_column(files[0], group)
    apart = bool(files[0].about.get(APART))
    by = by or (["subset"] if apart else [])
    # Figures that need a threshold are compared where both have one.
    chosen = [b if isinstance(b, Matchings) and b.threshold is None else a for a, b in zip(*kinds, strict=True)]
    first = _read(files[0], kinds[0], key, by, column)
    second = _read(files[1], kinds[1], key, (), None)
    if key is None and len(first.keys) != len(second.keys):
        counts = f"{len(first.keys):,} and {len(second.keys):,} rows"
        raise WrongUse(f"{files[0].where} and {files[1].where} have {counts}, so are not in one order; name a --key")
    common, in_a, in_b = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    if not len(common):
        raise WrongUse(f"{files[0].where} and {files[1].where} have no key in common; name its columns with --key")
    joined, unlike, left_out = [], list[list[str]](), list[str]()
    for kind, in_first, in_second in zip(chosen, first.codes, second.codes, strict=True):
        codes, truth = _joint(kind, in_first[in_a], in_second[in_b])
        other = [
            one
            for one, at in zip(kind.below, _denominators(kind), strict=True)
            if (truth["a"] != truth["b"])[:, at].any()
        ]
        if {*other} - {*kind.optional}:
            if kind is chosen[0]:
                what = "have one image, but two" if isinstance(kind, Matchings) else "are not asked, but asked"
                raise WrongUse(f"{files[1].where}: some rows {what} in {files[0].where}; score both alike")
            left_out.append(f"{type(kind).__name__} is not compared: it is asked of other rows in B than in A")
            continue
        if other:
            left_out.append(f"not compared, since not {', '.join(other)} of the same rows in both")
        joined.append((kind, codes, truth))
        unlike.append(other)
    labels, groups = first.labels[in_a], None
    if first.groups is not None:
        order = np.argsort(first.groups[in_a], kind="stable")
        labels, groups = labels[order], first.groups[in_a][order]
        joined = [(kind, codes[order], truth) for kind, codes, truth in joined]
    lines = []
    numbered: list[tuple[str, int | None]] = [] if apart else [(ALL, None)]
    for name, number in [*numbered, *sorted((name, number) for number, name in enumerate(first.names))]:
        rows = slice(None) if number is None else labels == number
        if not len(joined[0][1][rows]):
            continue
        grouped = None if groups is None else groups[rows]
        here = [(kind, codes[rows], truth) for kind, codes, truth in joined]
        able = [_able(*one, other) for one, other in zip(here, unlike, strict=True)]
        if unknown := [figure for figure in figures if not any(figure in some for some in able)]:
            listed = ", ".join(figure for some in able for figure in some)
            raise WrongUse(f"--figures {','.join(unknown)}: the files have {listed}")
        for (kind, codes, truth), some in zip(here, able, strict=True):
            main = kind.main(_totals(codes, truth["a"]))
            if asked := [figure for figure in figures or main if figure in some]:
                lines += _lines(name, kind, codes, truth, grouped, asked, seed, resamples)
    corrected = holm([line["p"] for line in lines])
    table = tuple(Compared(**line, p_holm=p) for line, p in zip(lines, corrected, strict=True))
    only = len(first.keys) - len(common), len(second.keys) - len(common)
    notes = left_out + [
        f"{count:,} rows of {file.where} are not in {other.where} and are left out"
        for count, file, other in zip(only, files, files[::-1], strict=True)
        if count
    ]
    if groups is None:
        notes.append("every row is its own group; where rows share an image or video, name its column with --group")
    return Comparison(len(common), *only, table, tuple(notes))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one's."""
    corrected, least = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        corrected[place] = least
    return corrected


def _read(
    file: ScoreFile, kinds: Sequence[ScoreKind], key: Sequence[str] | None, by: Sequence[str], group: str | None
) -> _Rows:
    for name in key or ():
        file.require(name, "--key")
    for name in by:
        file.require(name, "--by")
    labels, kept = Labels(by), []
    columns = [name for kind in kinds for name in kind.columns]
    for batch in file.batches([*columns, *(key or ()), *by, *([] if group is None else [group])]):
        numbers = labels.numbered(batch) if by else np.zeros(len(batch), np.uint16)
        grouped = np.empty(0, np.uint64) if group is None else digests(batch, [group], empty=False)
        keys = np.arange(batch.first, batch.first + len(batch), dtype=np.uint64)
        codes = [kind.outcomes(batch).code for kind in kinds]
        kept.append((digests(batch, key) if key else keys, numbers, grouped, *codes))
    keys, numbered, groups, *found = (np.concatenate(column) for column in zip(*kept, strict=True))
    if key:
        file.refuse_repeats(key, "keep one row of each, or name columns that identify a row with --key")
    return _Rows(keys, found, numbered, None if group is None else groups, labels.names if by else [])


def _joint(kind: ScoreKind, a: Codes, b: Codes) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int8]]]:
    """Codes of pairs of codes, and which events are true of such a pair in A and in B."""
    joint = a.astype(np.uint32) << np.uint32(16) | b
    values, codes = np.unique(joint, return_inverse=True)
    truth = {"a": values >> 16, "b": values & 0xFFFF}
    return codes.astype(np.int64), {side: kind.truth[code].astype(np.int8) for side, code in truth.items()}


def _denominators(kind: ScoreKind) -> list[int]:
    return [kind.events.index(name) for name in kind.below]


def _able(
    kind: ScoreKind, codes: NDArray[np.int64], truth: dict[str, NDArray[np.int8]], unlike: Sequence[str]
) -> list[str]:
    """Figures of some rows that can be compared row by row: not those that are shares of events in ``unlike``."""
    shares = {figure: kind.share(figure) for figure in kind.names(_totals(codes, truth["a"]))}
    return [figure for figure, share in shares.items() if share is not None and share[1] not in unlike]


def _totals(codes: NDArray[np.int64], events: NDArray[np.int8]) -> Floats:
    """Sums of events over rows."""
    return np.asarray(np.bincount(codes, minlength=len(events)) @ events, np.float64)


def _lines(
    name: str,
    kind: ScoreKind,
    codes: NDArray[np.int64],
    truth: dict[str, NDArray[np.int8]],
    groups: Digests | None,
    figures: Sequence[str],
    seed: int,
    resamples: int,
) -> list[dict[str, Any]]:
    """The figures of some rows, without Holm's correction."""
    counted = np.bincount(codes, minlength=len(truth["a"]))
    totals: dict[str, Floats] = {side: (counted @ events).astype(np.float64) for side, events in truth.items()}
    # What a row adds: of every event, 1 where only A has it, -1 where only B has; then the denominators.
    below = _denominators(kind)
    added = np.concatenate([truth["a"] - truth["b"], truth["a"][:, below]], axis=1)
    sums, counts = alike(codes, added, groups)
    clusters = int(counts.sum())
    again = resampled(sums, counts, resamples if clusters > 1 else 0, seed, name)
    lines = []
    for figure in figures:
        event, denominator = (kind.events.index(one) for one in kind.share(figure) or ())
        n = totals["a"][denominator]
        low, high = interval(ratio(again[:, event], again[:, len(kind.events) + below.index(denominator)]))
        right = {side: events[:, event].astype(bool) for side, events in truth.items()}
        only_a = int(counted[right["a"] & ~right["b"]].sum())
        only_b = int(counted[right["b"] & ~right["a"]].sum())
        lines.append(
            {
                "rows": name,
                "figure": figure,
                "n": int(n),
                "groups": clusters,
                "a": float(100 * totals["a"][event] / n),
                "b": float(100 * totals["b"][event] / n),
                "difference": 100 * (only_a - only_b) / n,
                "low": low,
                "high": high,
                "only_a": only_a,
                "only_b": only_b,
                "p": sign_test(only_a, only_b),  # McNemar's exact test
            }
        )
    return lines
