"""Answers about two captions, also in both orders: their scores, and figures in percent with intervals by image."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.answers.parser import Choice
from twinset.evaluation.metrics.bootstrap import interval, resampled
from twinset.evaluation.metrics.figures import Figure


def scores(straight: int | None, swapped: int | None) -> tuple[float, float]:
    """Scores of two captions by the choices in both orders.

    Both agree on caption j: s_j = 1, the other score is 0. They disagree, or an answer has no choice: 0.5 and 0.5, a
    tie, which is strictly wrong and half right by chance.

    Args:
        straight, swapped: places of the captions that were chosen, as shown in order and in reverse; None for none.
    """
    if straight is None or swapped is None or straight != 1 - swapped:
        return 0.5, 0.5
    return (1.0, 0.0) if straight == 0 else (0.0, 1.0)


#: Whether the true caption is chosen, and which number was; both None for an answer without a choice.
Outcome = tuple[bool | None, Choice | None]
#: Numerator and denominator of a share, a number for each example.
Share = tuple[Sequence[int], Sequence[int]]


def order_figures(
    outcomes: Sequence[Outcome], images: Sequence[str], seed: int, resamples: int, label: str
) -> dict[str, Figure]:
    """Figures of one order.

    right, wrong, unparsed: of all answers; the expected value of ``right`` has a coin in place of an unparsed answer.
    first: of those with a choice, how many chose the caption that was shown first.
    """
    every = [1] * len(outcomes)
    right, unparsed = ([one is kind for one, _ in outcomes] for kind in (True, None))
    shares: dict[str, Share] = {
        "right": (right, every),
        "wrong": ([one is False for one, _ in outcomes], every),
        "unparsed": (unparsed, every),
        "first": ([choice == 1 for _, choice in outcomes], [choice is not None for _, choice in outcomes]),
    }
    expected = {"right": 100 * (sum(right) + sum(unparsed) / 2) / len(outcomes)}
    return _figures(shares, expected, images, seed, resamples, label)


def both_orders_figures(
    outcomes: Sequence[tuple[Outcome, Outcome]], images: Sequence[str], seed: int, resamples: int, label: str
) -> tuple[dict[str, Figure], dict[str, int]]:
    """Figures of examples that were asked in both orders, and how many are right, wrong, inconsistent and unparsed.

    right: the true caption is chosen in both orders. wrong: the other one in both. inconsistent: the order decides.
    unparsed: an answer has no choice. These four add up to 100.
    average: right answers of one order and of the other, their mean, as SugarCrepe's table has it.
    first: of the answers with a choice in either order, how many chose the caption that was shown first. A model that
    reads the captions chooses it in half of them.
    """
    every = [1] * len(outcomes)
    rights = [(a[0], b[0]) for a, b in outcomes]
    kinds: dict[str, list[int]] = {
        "right": [one == (True, True) for one in rights],
        "wrong": [one == (False, False) for one in rights],
        "inconsistent": [one in ((True, False), (False, True)) for one in rights],
        "unparsed": [None in one for one in rights],
    }
    shares: dict[str, Share] = {name: (some, every) for name, some in kinds.items()}
    shares["average"] = ([(a is True) + (b is True) for a, b in rights], [2] * len(outcomes))
    choices = [(a[1], b[1]) for a, b in outcomes]
    shares["first"] = ([one.count(1) for one in choices], [2 - one.count(None) for one in choices])
    figures = _figures(shares, {}, images, seed, resamples, label)
    return figures, {name: sum(some) for name, some in kinds.items()}


def _figures(
    shares: Mapping[str, Share],
    expected: Mapping[str, float],
    images: Sequence[str],
    seed: int,
    resamples: int,
    label: str,
) -> dict[str, Figure]:
    """Each share, 100 · sum of numerators / sum of denominators; left out where it is of nothing."""
    # A column for every numerator, then for every denominator: shape (examples, 2 · shares).
    columns = np.array([top for top, _ in shares.values()] + [under for _, under in shares.values()], np.int64).T
    number = {image: at for at, image in enumerate(dict.fromkeys(images))}
    clusters = np.zeros((len(number), columns.shape[1]), np.int64)
    np.add.at(clusters, [number[image] for image in images], columns)  # sums of an image's examples
    ways, counts = np.unique(clusters, axis=0, return_counts=True)
    many = len(clusters) > 1 and resamples > 0
    drawn = _percent(resampled(ways, counts, resamples, seed, label)) if many else None
    values = _percent(columns.sum(axis=0, keepdims=True).astype(np.float64))[0]
    found = dict[str, Figure]()
    for at, name in enumerate(shares):
        if not np.isnan(values[at]):
            low, high = (None, None) if drawn is None else interval(drawn[:, at])
            found[name] = Figure(float(values[at]), expected.get(name), low, high)
    return found


def _percent(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """100 · numerators / denominators, shape (n, shares); NaN where the denominator is 0."""
    top, under = np.split(sums, 2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(under > 0, 100 * top / under, np.nan)
