"""The dependency rule of questions (Cho et al. 2023)."""

import numpy as np

from twinset.generators.image_verification.scoring import asked, counted, scores


def test_a_child_counts_only_if_its_parents_are_yes() -> None:
    # dog, ball, red (of the ball), dog on ball
    graph = asked([0, 0, 0, 0], [1, 2, 3, 4], [(), (), (2,), (1, 2)])
    for yes, expected in (("1111", "1111"), ("1011", "1000"), ("0111", "0110"), ("1101", "1101")):
        found = counted(graph, np.array([one == "1" for one in yes]))
        assert "".join(str(int(one)) for one in found) == expected
    assert scores(graph, np.array([True, False, True, True])).tolist() == [0.25]


def test_rows_in_any_order_of_many_images_give_what_a_loop_gives() -> None:
    draw = np.random.default_rng(3)
    rows, expected = [], []
    for image in range(200):
        count = int(draw.integers(1, 8))
        parents = [tuple(int(one) for one in draw.integers(1, 9, draw.integers(0, 3))) for _ in range(count)]
        yes = (draw.random(count) < 0.7).tolist()
        told = dict(enumerate(yes, 1))
        expected.append(sum(told[n] and all(told.get(one, True) for one in parents[n - 1]) for n in told) / count)
        rows += [(image, n, parents[n - 1], yes[n - 1]) for n in told]
    order = draw.permutation(len(rows))
    shuffled = [rows[at] for at in order]
    graph = asked([one[0] for one in shuffled], [one[1] for one in shuffled], [one[2] for one in shuffled])
    assert scores(graph, np.array([one[3] for one in shuffled])).tolist() == expected


def test_an_image_number_without_questions_has_no_score() -> None:
    found = scores(asked([0, 2], [1, 1], [(), ()]), np.array([True, False]))
    assert found[0] == 1 and np.isnan(found[1]) and found[2] == 0
