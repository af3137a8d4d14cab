"""The best image of each caption, and which of them fit the original caption too."""

import polars as pl

from twinset.generators.generated_pairs.joining import best_images

Score = float | None


def best(
    captions: list[int], scores: list[Score], originals: list[Score], limit: float | None = 1.0, compared: bool = True
) -> tuple[dict[int, int], list[bool]]:
    """The place of the best image of each caption, and whether each fits the original one too."""
    numbers = {"score": scores, "original": originals}
    images = pl.DataFrame({"row": captions, **numbers}, schema_overrides=dict.fromkeys(numbers, pl.Float64))
    images = images.with_columns(verified=True).with_row_index("place")
    chosen = best_images(images, limit, compared).sort("row")
    return dict(chosen.select("row", "place").rows()), chosen["ambiguous"].to_list()


def test_the_best_of_k_and_of_equal_ones_the_first() -> None:
    scores: list[Score] = [0.5, 0.2, 0.9, 0.8, 0.9, 0.0, None, 0.0, None]
    assert best([1, 0, 1, 0, 1, 3, 4, 4, 5], scores, [None] * 9)[0] == {0: 3, 1: 2, 3: 5, 4: 7, 5: 8}
    assert best([], [], []) == ({}, [])


def test_ambiguity_by_limit_and_by_comparison() -> None:
    for limit, compared, expected in (
        (1.0, True, [True, False, True, False, False]),
        (1.0, False, [True, False, False, False, False]),
        (0.5, False, [True, True, True, False, False]),
        (None, True, [True, False, True, False, False]),
        (None, False, [False] * 5),
    ):
        found = best([*range(5)], [1.0, 1.0, 0.5, 0.8, 0.7], [1.0, 0.9, 0.5, 0.2, None], limit, compared)
        assert found[1] == expected


def test_an_ambiguous_caption_is_so_whatever_its_other_images() -> None:
    assert best([0, 0, 1, 1], [1.0, 0.9, 0.6, 0.7], [1.0, 0.0, 0.0, 0.1]) == ({0: 0, 1: 3}, [True, False])
