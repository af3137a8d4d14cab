"""Figures of one test set over several seeds of a model, with a bootstrap of both: seeds, and groups of the test set.

All seeds answer the same examples, so the groups of a resample hold for each of its seeds (Owen, 2007, "The pigeonhole
bootstrap"). Of one seed it is the bootstrap of `evaluation.metrics.measure`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import distinct_rows, interval, resampled
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.outcomes import Floats, ScoreKind
from twinset.evaluation.metrics.score_kinds import group_column, kinds_of
from twinset.evaluation.score_files.opening import Digests, Labels, ScoreFile, digests, open_scores


@dataclass(frozen=True, slots=True)
class Resampled:
    """A figure in percent, and its values over resamples, (resamples,); NaN where a resample has no row of its kind."""

    value: float
    again: Floats

    def figure(self) -> Figure:
        """With the 95 % interval."""
        return Figure(self.value, None, *interval(self.again))


def mean_of(some: Sequence[Resampled]) -> Resampled:
    """The mean of figures of different test sets, each of which counts the same, by models of the same seeds."""
    draws = min(len(one.again) for one in some)  # none of a test of one group
    return Resampled(float(np.mean([one.value for one in some])), np.mean([one.again[:draws] for one in some], axis=0))


def over_seeds(paths: Sequence[Path], label: str, seed: int = 0, resamples: int = 2000) -> dict[str, Resampled]:
    """The figures of score files of one test set, a file a seed.

    Args:
        label: of the test set: resamples of two differ, but for their seeds.
        seed: of the bootstrap.

    Raises:
        WrongUse: a file is broken, or two do not have the same groups.
    """
    return over_seeds_by(paths, (), label, seed, resamples)[""]


def over_seeds_by(
    paths: Sequence[Path], by: Sequence[str], label: str, seed: int = 0, resamples: int = 2000
) -> dict[str, dict[str, Resampled]]:
    """As `over_seeds`, by value of a column, or "value / value" of two; by "" of none."""
    files = [open_scores(path) for path in paths]
    found = dict[str, dict[str, Resampled]]()
    for kind in kinds_of(files[0]):
        each = [_by_group(file, kind, by) for file in files]
        for path, one in zip(paths, each, strict=True):
            same = one.keys() == each[0].keys() and all(
                np.array_equal(groups, each[0][value][0]) for value, (groups, _) in one.items()
            )
            if not same:
                raise WrongUse(f"{path}: has other examples than {paths[0]}; score both on the same data")
        for value in [*each[0]]:
            sums = np.concatenate([one.pop(value)[1] for one in each], axis=1)  # (groups, seeds · events)
            of_value = _drawn(kind, sums, len(paths), f"{label}{value}", seed, resamples)
            found.setdefault(value, {}).update(of_value)
    return found


def _drawn(
    kind: ScoreKind, sums: NDArray[np.signedinteger[Any]], seeds: int, label: str, seed: int, resamples: int
) -> dict[str, Resampled]:
    ways, counts = distinct_rows(sums, np.ones(len(sums), np.int64))
    draws = resamples if len(sums) > 1 else 0  # one group has no spread
    again = resampled(ways, counts, draws, seed, label).reshape(draws, seeds, len(kind.events))
    chosen = np.random.default_rng(seed).multinomial(seeds, np.full(seeds, 1 / seeds), draws)
    drawn = np.einsum("rs,rse->re", chosen, again)
    totals = sums.sum(0, np.int64).reshape(seeds, -1).sum(0).astype(np.float64)
    return {name: Resampled(float(kind.figure(name, totals)), kind.figure(name, drawn)) for name in kind.names(totals)}


def _by_group(
    file: ScoreFile, kind: ScoreKind, by: Sequence[str]
) -> dict[str, tuple[Digests, NDArray[np.signedinteger[Any]]]]:
    """By value: groups in order, (groups,), and sums of events of each, (groups, events)."""
    column = group_column(file, None) or "key"
    labels = Labels(by)
    codes, groups, numbers = [], [], []
    for batch in file.batches([*kind.columns, column, *by]):
        codes.append(kind.outcomes(batch).code)
        groups.append(digests(batch, [column], empty=False))
        numbers.append(labels.numbered(batch) if by else np.zeros(len(batch), np.uint16))
    code, group, number = (np.concatenate(one) for one in (codes, groups, numbers))
    found = {}
    for place, value in sorted(enumerate(labels.names if by else [""]), key=lambda one: one[1]):
        here = number == place
        names, places = np.unique(group[here], return_inverse=True)
        # Sums are at most as large as a group: bytes, mostly.
        small = np.min_scalar_type(-1 - int(np.bincount(places).max(initial=0)))
        sums = np.empty((len(names), len(kind.events)), small)
        for event, truth in enumerate(kind.truth.T):
            sums[:, event] = np.bincount(places, truth[code[here]], len(names))
        found[value] = names, sums
    return found
