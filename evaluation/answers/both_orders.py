"""Choices between two captions that were shown in both orders, as scores."""

TIE = (0.5, 0.5)


def scores(straight: int | None, swapped: int | None) -> tuple[float, float]:
    """Scores of two captions by the choices in both orders.

    Both agree on caption j: s_j = 1, the other score is 0. They disagree, or an answer has no choice: 0.5 and 0.5, a
    tie, which is strictly wrong and half right by chance.

    Args:
        straight, swapped: places of the captions that were chosen, as shown in order and in reverse; None for none.
    """
    if straight is None or swapped is None or straight != 1 - swapped:
        return TIE
    return (1.0, 0.0) if straight == 0 else (0.0, 1.0)
