"""Figures of one test set over several seeds of a model, with a bootstrap of both: seeds, and groups of the test set.

All seeds answer the same examples, so the groups of a resample hold for each of its seeds (Owen, 2007, "The pigeonhole
bootstrap"). Of one seed it is the bootstrap of `evaluation.metrics.measure`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.bootstrap import distinct_rows, interval, resampled
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.outcomes import Floats, ScoreKind
from twinset.evaluation.metrics.score_kinds import group_column, kinds_of
from twinset.evaluation.score_files.opening import Digests, ScoreFile, digests, open_scores
from twinset.manifests.errors import WrongUse


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
    files = [open_scores(path) for path in paths]
    found = {}
    for kind in kinds_of(files[0]):
        each = [_by_group(file, kind) for file in files]
        for path, (groups, _) in zip(paths, each, strict=True):
            if not np.array_equal(groups, each[0][0]):
                raise WrongUse(f"{path}: has other examples than {paths[0]}; score both on the same data")
        sums = np.concatenate([one for _, one in each], axis=1)  # (groups, seeds · events)
        ways, counts = distinct_rows(sums, np.ones(len(sums), np.int64))
        draws = resamples if len(sums) > 1 else 0  # one group has no spread
        again = resampled(ways, counts, draws, seed, label).reshape(draws, len(paths), len(kind.events))
        chosen = np.random.default_rng(seed).multinomial(len(paths), np.full(len(paths), 1 / len(paths)), draws)
        drawn = np.einsum("rs,rse->re", chosen, again)
        totals = sums.sum(0).reshape(len(paths), -1).sum(0).astype(np.float64)
        for name in kind.names(totals):
            found[name] = Resampled(float(kind.figure(name, totals)), kind.figure(name, drawn))
    return found


def _by_group(file: ScoreFile, kind: ScoreKind) -> tuple[Digests, NDArray[np.int64]]:
    """Groups in order, (groups,), and sums of events of each, (groups, events)."""
    column = group_column(file, None) or "key"
    codes, groups = [], []
    for batch in file.batches([*kind.columns, column]):
        codes.append(kind.outcomes(batch).code)
        groups.append(digests(batch, [column], empty=False))
    names, places = np.unique(np.concatenate(groups), return_inverse=True)
    truth = kind.truth[np.concatenate(codes)]
    sums = np.stack([np.bincount(places, events, len(names)) for events in truth.T], axis=1)
    return names, sums.astype(np.int64)
