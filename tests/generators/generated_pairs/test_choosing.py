"""The best image of each caption, and which of them fit the original caption too."""

import numpy as np
import numpy.typing as npt

from twinset.generators.generated_pairs.joining import NONE, choose

NAN = float("nan")


def floats(*values: float) -> npt.NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def chosen(
    captions: list[int],
    scores: npt.NDArray[np.float64],
    originals: npt.NDArray[np.float64] | None = None,
    limit: float | None = 1.0,
    compared: bool = True,
) -> tuple[list[int], list[bool]]:
    given = np.full(len(scores), NAN) if originals is None else originals
    scored = np.arange(len(scores))
    owners = np.array(captions, np.int64)
    image, ambiguous = choose(owners, scores, given, scored, max(captions, default=-1) + 1, limit, compared)
    return image.tolist(), ambiguous.tolist()


def test_the_best_of_k_and_of_equal_ones_the_first() -> None:
    assert chosen([1, 0, 1, 0, 1, 3], floats(0.5, 0.2, 0.9, 0.8, 0.9, 0.0))[0] == [3, 2, NONE, 5]


def test_nan_loses_and_is_chosen_only_alone() -> None:
    assert chosen([0, 0, 1], floats(NAN, 0.0, NAN))[0] == [1, 2]


def test_nothing_gives_nothing() -> None:
    assert chosen([], floats()) == ([], [])


def test_ambiguity_by_limit_and_by_comparison() -> None:
    scores, originals = floats(1.0, 1.0, 0.5, 0.8, 0.7), floats(1.0, 0.9, 0.5, 0.2, NAN)
    for limit, compared, expected in (
        (1.0, True, [True, False, True, False, False]),
        (1.0, False, [True, False, False, False, False]),
        (0.5, False, [True, True, True, False, False]),
        (None, True, [True, False, True, False, False]),
        (None, False, [False] * 5),
    ):
        assert chosen([*range(5)], scores, originals, limit, compared)[1] == expected


def test_an_ambiguous_caption_is_dropped_whatever_its_other_images() -> None:
    image, ambiguous = chosen([0, 0, 1, 1], floats(1.0, 0.9, 0.6, 0.7), floats(1.0, 0.0, 0.0, 0.1))
    assert (image, ambiguous) == ([NONE, 3], [True, False])
