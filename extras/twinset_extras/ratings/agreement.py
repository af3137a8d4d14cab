"""How far the scores of checks go with people's ratings of the same images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinset import WrongUse
from twinset.evaluation.metrics.bootstrap import interval
from twinset.evaluation.metrics.figures import Figure, figures_json
from twinset_extras.ratings.released import Ratings

LEAST = 4  # values: of three, one order in six is the same by chance
PEOPLE = "people: one against the others"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Correlations of one check with the mean rating, over n images; the intervals are of prompts.

    published: what is reported of the same scores, by figure.
    """

    n: int
    figures: dict[str, Figure]
    published: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        return {"n": self.n, **figures_json(self.figures), "published": dict(self.published)}


@dataclass(frozen=True, slots=True)
class Agreements:
    """By check. `PEOPLE`: the first rating of each image against the mean of its others. notes: for people."""

    where: str
    checks: Mapping[str, Agreement]
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        checks = {name: check.as_json() for name, check in self.checks.items()}
        return {"ratings": self.where, "checks": checks, "notes": self.notes}


def agreement(
    ratings: Ratings, scores: Mapping[str, Mapping[str, float]], seed: int = 0, resamples: int = 2000
) -> Agreements:
    """The agreement of all checks: those that come with the ratings, and others.

    Raises `WrongUse`: a check scored fewer than `LEAST` of the images.
    """
    agreements, notes = dict[str, Agreement](), [*ratings.notes]
    for name, given in {**ratings.scores, **scores}.items():
        keys = [key for key in ratings.images if key in given]
        if len(keys) < LEAST:
            raise WrongUse(
                f"{name}: scores {len(keys)} of the {len(ratings.images):,} images of {ratings.where}, and {LEAST} are "
                f"needed; keys there are such as {next(iter(ratings.images), 'none')!r}, here such as "
                f"{next(iter(given), 'none')!r}"
            )
        if missing := len(ratings.images) - len(keys):
            notes.append(f"{name}: {missing:,} images have no score and are left out")
        people = [ratings.images[key].mean for key in keys]
        groups = [ratings.images[key].group for key in keys]
        figures = correlations([given[key] for key in keys], people, groups, seed, resamples)
        agreements[name] = Agreement(len(keys), figures, ratings.published.get(name, {}))
    several = [rated for rated in ratings.images.values() if len(rated.ratings) > 1]
    if len(several) >= LEAST:
        first = [rated.ratings[0] for rated in several]
        rest = [sum(rated.ratings[1:]) / (len(rated.ratings) - 1) for rated in several]
        figures = correlations(first, rest, [rated.group for rated in several], seed, resamples)
        agreements[PEOPLE] = Agreement(len(several), figures, {})
    if not agreements:
        raise WrongUse(f"{ratings.where}: no scores, and one rating an image; name scores with --scores FILE")
    return Agreements(ratings.where, agreements, notes)


def correlations(
    a: Sequence[float], b: Sequence[float], groups: Sequence[str] | None, seed: int = 0, resamples: int = 2000
) -> dict[str, Figure]:
    """Kendall's tau-b, Spearman's rho and Pearson's r, with intervals of groups drawn with replacement; of rows where
    there are none. NaN where one list has a single value.
    """
    from scipy.stats import kendalltau, pearsonr, spearmanr  # the command line does without

    tests = {"kendall": kendalltau, "spearman": spearmanr, "pearson": pearsonr}  # -1 to 1
    pairs, rng = np.stack([a, b], axis=1).astype(np.float64), np.random.default_rng(seed)
    which = np.arange(len(pairs)) if groups is None else np.unique(groups, return_inverse=True)[1]
    members = [pairs[which == number] for number in range(int(which.max()) + 1)]
    orders = rng.integers(0, len(members), (resamples if len(members) > 1 else 0, len(members)))
    drawn = [pairs, *(np.concatenate([members[number] for number in order]) for order in orders)]
    figures = dict[str, Figure]()
    for name, test in tests.items():
        values = np.array([test(*each.T).statistic if np.ptp(each, axis=0).all() else np.nan for each in drawn])
        figures[name] = Figure(float(values[0]), None, *interval(values[1:]))
    return figures
