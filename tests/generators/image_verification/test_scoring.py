"""The dependency rule of questions (Cho et al. 2023)."""

from twinset.generators.image_verification.scoring import counted


def test_a_child_counts_only_if_its_parents_are_yes() -> None:
    # dog, ball, red (of the ball), dog on ball
    for yes, expected in (("1111", "1111"), ("1011", "1000"), ("0111", "0110"), ("1101", "1101")):
        found = counted([1, 2, 3, 4], [(), (), (2,), (1, 2)], [one == "1" for one in yes])
        assert "".join(str(int(one)) for one in found) == expected


def test_a_parent_that_is_no_question_is_ignored() -> None:
    assert counted([3, 1], [(1, 7), (9,)], [True, True]) == [True, True]
