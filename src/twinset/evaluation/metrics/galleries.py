"""Figures of galleries and of videos: recall at K, and boundaries found within some seconds."""

from collections.abc import Sequence

import numpy as np

from twinset.evaluation.metrics.row_values import Floats, Places, RowValues
from twinset.evaluation.score_files.opening import Batch

THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds
RANKS = ("higher", "tied", "entries", "targets")
TIED_TARGETS = "tied_targets"
SMALL = 20  # entries: GeneCIS has 10 or 15, CIRR's subsets 5
PLACES = (5, 10, 25, 50)  # of CIRCO's mean average precision
AT = {"small": (1, 2, 3), "large": (1, 5, 10, 50)}


def of_errors(table: Batch) -> RowValues:
    """Grounding of boundaries in videos (EqBen A.6, Table 12): found within each of `THRESHOLDS`, and their mean.

    The prediction is the gap between frames whose score s(I1, T1) + s(I2, T2) is highest. Where several gaps score the
    same, all of them have to be near enough for a strict hit; expected is the share of them that is.
    """
    errors, begins = table.lists("errors")
    gaps = np.diff([*begins, len(errors)])
    # In float32, as the table has them: an error of 0.1 s is within 0.1 s.
    within = errors.astype(np.float32)[:, None] <= np.asarray(THRESHOLDS, np.float32)
    shares = np.add.reduceat(within, begins, axis=0, dtype=np.float64) / gaps[:, None]
    names = [f"grounding@{seconds}" for seconds in THRESHOLDS]
    hits = [shares == 1, shares]
    return RowValues(*({"grounding": hit.mean(1), **dict(zip(names, hit.T * 1.0, strict=True))} for hit in hits))


def of_ranks(table: Batch) -> RowValues:
    """Recall@K, K as is usual for galleries of that size: 1, 2, 3 where all have at most `SMALL` entries, as GeneCIS;
    else 1, 5, 10, 50: CIRR, MIT-States, retrieval of captions.

    A query has ``higher`` wrong entries that score more than its best target, and ``tied`` ones that score the same.
    Its target is found within K strictly if it is there however ties fall: higher + tied < K. `TIED_TARGETS` targets
    score as the best one; without this column it is 1.
    """
    higher, tied, entries, targets = (table.counts(name) for name in RANKS)
    if (none := targets == 0).any():
        raise table.wrong("column targets", none, "0; a query has one target or more in its gallery")
    if (over := higher + tied + targets > entries).any():
        raise table.wrong(
            "column entries", over, "fewer than higher, tied and targets together; count all that is ranked"
        )
    alike = table.counts(TIED_TARGETS) if TIED_TARGETS in table.columns else np.ones(len(table), np.int64)
    if (wrong := (alike == 0) | (alike > targets)).any():
        raise table.wrong(f"column {TIED_TARGETS}", wrong, "not 1 to targets; the best target is one of them")
    ks = AT["large" if (entries > SMALL).any() else "small"]
    strict = {f"recall@{k}": (higher + tied < k).astype(np.float64) for k in ks}
    return RowValues(strict, {f"recall@{k}": _hit(k - higher, tied, alike) for k in ks})


def _hit(places: Places, wrong: Places, targets: Places) -> Floats:
    """Chance that a target is among the first places, in random order of entries with one score; all shape (n,).

    The first r of w wrong entries and t targets are all wrong with chance C(w, r) / C(w + t, r).
    For one target, 1 minus this is r / (w + 1).
    """
    from scipy.special import comb  # the command line does without

    first = np.clip(places, 0, wrong + targets)
    return np.asarray(1 - comb(wrong, first) / comb(wrong + targets, first), np.float64)


def mean_average_precision(above: Sequence[Floats], level: Sequence[Floats]) -> RowValues:
    """``map@k`` for k of `PLACES` (CIRCO, section 5): the mean over queries of the average precision at k.

    AP@k = 1 / min(targets, k) · Σ_{p ≤ k} precision(p) · [the entry at place p is a target]. Strict: in a tie wrong
    entries come first. Expected: the mean over all orders of equal scores.

    Args:
        above, level: of each target of a query in turn, how many wrong entries score higher, and how many the same.
    """
    rows = [(np.asarray(a, np.int64), np.asarray(b, np.int64)) for a, b in zip(above, level, strict=True)]
    strict, expected = ([precision(*row) for row in part] for part in ([(a + b, 0 * b) for a, b in rows], rows))
    names = [f"map@{k}" for k in PLACES]
    return RowValues(*(dict(zip(names, np.array(part).T, strict=True)) for part in (strict, expected)))


def semantic_map(above: Sequence[Floats], level: Sequence[Floats], tags: Sequence[str]) -> RowValues:
    """``map@10 ASPECT``: as ``map@10``, over the queries with that semantic aspect (CIRCO's release)."""
    aspects = [{*filter(None, text.split(";"))} for text in tags]
    every, values = sorted(set().union(*aspects)), mean_average_precision(above, level)

    def of(column: Floats) -> dict[str, Floats]:
        return {f"map@10 {tag}": np.where([tag in asked for asked in aspects], column, np.nan) for tag in every}

    return RowValues(of(values.strict["map@10"]), of(values.expected["map@10"]))


def precision(above: Places, level: Places, ends: Sequence[int] = PLACES) -> list[float]:
    """Average precision at each of ``ends``, the mean over all orders of entries with one score.

    Args:
        above, level: of each target, how many wrong entries score higher, and how many the same; shape (targets,).
    """
    sums, limits = np.zeros(len(ends)), np.array(ends)
    before = 0  # targets above the tie
    for wrong, tied in sorted({*zip(above.tolist(), level.tolist(), strict=True)}):
        targets = int(((above == wrong) & (level == tied)).sum())
        size = targets + tied
        for place in range(1, size + 1):
            # At a place of the tie is a target with chance t / n; before it, in the tie, are then the share
            # (t - 1) / (n - 1) of place - 1 targets.
            share = (place - 1) * (targets - 1) / max(size - 1, 1)
            at = wrong + before + place
            sums += np.where(at <= limits, targets / size * (before + 1 + share) / at, 0)
        before += targets
    return [float(total) / min(len(above), k) for total, k in zip(sums, ends, strict=True)]
