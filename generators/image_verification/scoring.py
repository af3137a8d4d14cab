"""The score of an image: the share of its questions that are answered yes, by the dependency rule (Cho et al. 2023).

A child counts only if its parents are answered yes. As in the released code, the answers to the parents decide, not
whether these count themselves.
"""

from collections.abc import Sequence

YES = 0.5  # the least probability of an answer that counts as yes


def counted(ids: Sequence[int], parents: Sequence[Sequence[int]], yes: Sequence[bool]) -> list[bool]:
    """Which questions of an image count: those answered yes whose parents are all answered yes.

    Args:
        ids: of the questions, each different.
        parents: ids of the parents of each; one that no question has is ignored.
        yes: whether each is answered so.
    """
    said = dict(zip(ids, yes, strict=True))
    return [own and all(said.get(one, True) for one in others) for own, others in zip(yes, parents, strict=True)]
