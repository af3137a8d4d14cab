"""Kinds of tables of scores: which of them a file is, by its columns, and what of it is grouped."""

import math

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.matching import CHOICES, CORRECT, FINER, RELEASED, SCORES, Matchings
from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, ratio, truth_of
from twinset.evaluation.metrics.questions import YesNo
from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.opening import ScoreFile

THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds
_NAMES = tuple(f"grounding@{seconds}" for seconds in THRESHOLDS)
_BITS = truth_of(len(THRESHOLDS) + 1)
_EVENTS = {
    "rows": _BITS[:, 0] | True,
    **{name: _BITS[:, bit] for bit, name in enumerate(_NAMES)},
    "tie": _BITS[:, len(THRESHOLDS)],
}


class Groundings(ScoreKind):
    """Grounding of boundaries in videos (EqBen A.6, Table 12): percent found within each of `THRESHOLDS`, and the mean.

    The prediction is the gap between frames whose score s(I1, T1) + s(I2, T2) is highest. Where several gaps score the
    same, all of them have to be near enough for a strict hit. The mean is called ``grounding``.
    """

    columns: tuple[str, ...] = ("errors",)
    events = tuple(_EVENTS)
    truth = np.stack([*_EVENTS.values()], axis=1).astype(np.uint8)

    def outcomes(self, batch: Batch) -> Outcomes:
        errors, begins = batch.lists("errors")
        gaps = np.diff([*begins, len(errors)])
        # In float32, as the table has them: an error of 0.1 s is within 0.1 s.
        within = errors.astype(np.float32)[:, None] <= np.asarray(THRESHOLDS, np.float32)
        hits = np.add.reduceat(within, begins, axis=0, dtype=np.int64)
        found = hits == gaps[:, None]
        tie = ((hits > 0) & ~found).any(1)
        code = code_of([*found.T, tie])
        expected = self.truth[code].astype(np.float64)
        # One of the best-scoring gaps at random: the share of them that is near enough.
        expected[:, 1:-1] = hits / gaps[:, None]
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ("grounding", *_NAMES)

    def main(self, sums: Floats) -> tuple[str, ...]:
        return _NAMES

    def share(self, name: str) -> tuple[str, str] | None:
        return None if name == "grounding" else (name, "rows")

    def figure(self, name: str, sums: Floats) -> Floats:
        if name == "grounding":
            return np.asarray(np.mean([self.figure(one, sums) for one in _NAMES], axis=0), np.float64)
        return super().figure(name, sums)

    def tied(self, sums: Floats) -> float | None:
        return float(sums[self.events.index("tie")])


RANKS = ("higher", "tied", "entries", "targets")
TIED_TARGETS = "tied_targets"
SMALL = 20  # entries: GeneCIS has 10 or 15, CIRR's subsets 5
AT = {"small": (1, 2, 3), "large": (1, 5, 10, 50)}
ALL = tuple(sorted({*AT["small"], *AT["large"]}))
_RANK_BITS = truth_of(len(ALL) + 3)
_RANK_EVENTS = {
    "rows": _RANK_BITS[:, 0] | True,
    **{f"recall@{k}": _RANK_BITS[:, bit] for bit, k in enumerate(ALL)},
    "large": _RANK_BITS[:, len(ALL)],
    "tie small": _RANK_BITS[:, len(ALL) + 1],
    "tie large": _RANK_BITS[:, len(ALL) + 2],
}


class Queries(ScoreKind):
    """Recall@K, K as is usual for galleries of that size: 1, 2, 3 where all have at most `SMALL` entries, as
    GeneCIS; else 1, 5, 10, 50: CIRR, MIT-States, retrieval of captions.

    A query has ``higher`` wrong entries that score more than its best target, and ``tied`` ones that score the same.
    Its target is found within K strictly if it is there however ties fall: higher + tied < K. ``tied_targets`` targets
    score as the best one; without this column it is 1.

    Args:
        columns: of the table: `RANKS`, with or without `TIED_TARGETS`.
    """

    events = tuple(_RANK_EVENTS)
    truth = np.stack([*_RANK_EVENTS.values()], axis=1).astype(np.uint8)

    def __init__(self, columns: tuple[str, ...] = RANKS) -> None:
        self.columns = columns

    def outcomes(self, batch: Batch) -> Outcomes:
        higher, tied, entries, targets = (batch.counts(name) for name in RANKS)
        if (none := targets == 0).any():
            raise batch.wrong("column targets", none, "0; a query has one target or more in its gallery")
        if (over := higher + tied + targets > entries).any():
            raise batch.wrong(
                "column entries", over, "fewer than higher, tied and targets together; count all that is ranked"
            )
        alike = batch.counts(TIED_TARGETS) if TIED_TARGETS in self.columns else np.ones(len(batch), np.int64)
        if (wrong := (alike == 0) | (alike > targets)).any():
            raise batch.wrong(f"column {TIED_TARGETS}", wrong, "not 1 to targets; the best target is one of them")
        found = {k: higher + tied < k for k in ALL}
        # A tie matters where the target is among the first K in the best order of equal scores, but not in the worst.
        matters = {k: (higher < k) & ~found[k] for k in ALL}
        ties = [np.any([matters[k] for k in AT[size]], axis=0) for size in ("small", "large")]
        code = code_of([*found.values(), entries > SMALL, *ties])
        expected = self.truth[code].astype(np.float64)
        for k in ALL:
            expected[:, self.events.index(f"recall@{k}")] = _hit(k - higher, tied, alike)
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return tuple(f"recall@{k}" for k in AT[self._size(sums)])

    def tied(self, sums: Floats) -> float | None:
        return float(sums[self.events.index(f"tie {self._size(sums)}")])

    def _size(self, sums: Floats) -> str:
        return "large" if sums[self.events.index("large")] else "small"


def _hit(places: NDArray[np.int64], wrong: NDArray[np.int64], targets: NDArray[np.int64]) -> Floats:
    """Chance that a target is among the first places, in random order of entries with one score; all shape (n,).

    The first r of w wrong entries and t targets are all wrong with chance C(w, r) / C(w + t, r)
    = Π_{i < r} (w - i) / (w + t - i). For one target, 1 minus this is r / (w + 1).
    """
    miss = np.ones(len(places))
    for i in range(max(0, int(places.max(initial=0)))):
        factor = np.maximum(wrong - i, 0) / np.maximum(wrong + targets - i, 1)
        miss = np.where(i < places, miss * factor, miss)
    return 1 - miss


#: Metrics of single benchmarks. A score file says in its metadata which are asked for; those of installed packages are
#: chosen by their columns alone.
KINDS = {
    "yes-no": "twinset.evaluation.metrics.questions:YesNo",
    "all-targets": "twinset.evaluation.metrics.questions:AllTargets",
    "sets": "twinset.evaluation.metrics.questions:PairsAndSets",
    "map": "twinset.evaluation.metrics.questions:MeanAveragePrecision",
    "average-precision": "twinset.evaluation.metrics.questions:AveragePrecision",
    "semantic-map": "twinset.evaluation.metrics.questions:SemanticMap",
    "ranking": "twinset.evaluation.metrics.ranking:Ranking",
    "detection": "twinset.evaluation.metrics.score_kinds:Detection",
}
METRICS = Registry[type[ScoreKind]]("metric", ScoreKind, __name__, "twinset.metrics")
#: Columns of each of twinset's kinds; the first that a file has are read.
COLUMNS = (SCORES, SCORES[:2], (*RANKS, TIED_TARGETS), RANKS, Groundings.columns, *RELEASED, CORRECT, CHOICES, FINER)
NO_THRESHOLD = (
    "VALSE's acc, p_c, p_f and min are left out: they need a threshold. Name one with --threshold, such as 0.5 where "
    "scores are probabilities of a match; the similarities of models such as CLIP have none"
)


def kinds_of(file: ScoreFile, threshold: float | None = None) -> list[ScoreKind]:
    """The kind of scores that a file has, then the metrics that it names in its metadata (``"metrics"``), and those of
    installed packages whose columns it has.

    Args:
        threshold: as `kind_of` takes it.

    Raises:
        WrongUse: as `kind_of`, where no metric reads the file either.
    """
    asked = file.about.get("metrics")
    named = [name for name in KINDS if name in (asked if isinstance(asked, list) else ())]
    metrics = [METRICS.find(name)() for name in [*named, *(name for name in METRICS.kinds() if name not in KINDS)]]
    found = [one for one in metrics if {*one.columns} <= {*file.names}]
    for one in found:
        if isinstance(one, YesNo):
            one.threshold = _threshold(file, threshold)
    if found and threshold is None and not any({*columns} <= {*file.names} for columns in COLUMNS):
        return found
    return [kind_of(file, threshold), *found]


def kind_of(file: ScoreFile, threshold: float | None = None) -> ScoreKind:
    """The kind of scores that a file has, of twinset's own.

    Args:
        threshold: see `Matchings`; None: as the file says of itself (``"threshold"`` in its metadata), else none.

    Raises:
        WrongUse: the columns are those of no kind of table; or of half a kind.
    """
    names = {*file.names}
    columns = next((kind for kind in COLUMNS if names >= {*kind}), None)
    if columns is None or (columns == SCORES[:2] and names & {*SCORES[2:]}):
        kinds = "; or ".join(", ".join(kind) for kind in COLUMNS)
        raise WrongUse(f"{file.where}: no scores in its columns: {file.listed}; needed are {kinds}")
    for name in columns:
        file.require(name, "")
    if threshold is not None and columns[0] not in SCORES:
        raise WrongUse(f"{file.where}: --threshold is about scores, and it has none; leave the option out")
    if columns[: len(RANKS)] == RANKS:
        return Queries(columns)
    if columns == Groundings.columns:
        return Groundings()
    return Matchings(columns, _threshold(file, threshold) if columns[0] in SCORES else None)


def _threshold(file: ScoreFile, threshold: float | None) -> float | None:
    """The threshold that was asked for, else that of the file."""
    if threshold is not None:
        return threshold
    found: float | None = file.about.get("threshold")
    number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
    if found is not None and not number:
        raise WrongUse(f"{file.where}: its metadata has the threshold {found!r}; write a number, or none")
    return found


def group_column(file: ScoreFile, group: str | None) -> str | None:
    """The column whose rows belong together: as asked for, else ``group``; None where every row is its own group."""
    if group is not None:
        file.require(group, "--group")
        return group
    return "group" if "group" in file.names else None


#: Columns: whether each half is told right, natural first.
TOLD = ("natural_text", "synthetic_text", "natural_image", "synthetic_image")


class Detection(ScoreKind):
    """Percent of captions, and of images, that are told right (BiVLC, Table 4); both halves of a pair count."""

    columns = TOLD
    events = ("rows", *TOLD)
    truth = np.insert(truth_of(len(TOLD)), 0, True, axis=1).astype(np.uint8)

    def outcomes(self, batch: Batch) -> Outcomes:
        """As `ScoreKind.outcomes`."""
        return Outcomes(code_of([batch.flags(name) for name in TOLD]), None, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return "text_detection", "image_detection"

    def share(self, name: str) -> None:
        return None

    def figure(self, name: str, sums: Floats) -> Floats:
        first = 1 if name == "text_detection" else 3
        return ratio(sums[..., first : first + 2].sum(-1), 2 * sums[..., 0])

    def tied(self, sums: Floats) -> None:
        return None
