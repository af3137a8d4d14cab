"""The score of an image: the share of its questions that are answered yes, by the dependency rule (Cho et al. 2023).

Of a single question about the whole caption it is the probability of yes (Lin et al. 2024).

A child counts only if its parents are answered yes. As in the released code, the answers to the parents decide, not
whether these count themselves.
"""

from collections.abc import Mapping, Sequence

from twinset.generators.image_verification.questions import CAPTION, YES, ImageQuestion


def counted(ids: Sequence[int], parents: Sequence[Sequence[int]], yes: Sequence[bool]) -> list[bool]:
    """Which questions of an image count: those answered yes whose parents are all answered yes.

    Args:
        ids: of the questions, each different.
        parents: ids of the parents of each; one that no question has is ignored.
        yes: whether each is answered so.
    """
    said = dict(zip(ids, yes, strict=True))
    return [own and all(said.get(one, True) for one in others) for own, others in zip(yes, parents, strict=True)]


def answered(questions: Sequence[ImageQuestion], found: Mapping[str, float]) -> list[bool]:
    """Which questions count for an image. found: probability of yes by question."""
    yes = [found[one.question] >= YES for one in questions]
    return counted([one.id for one in questions], [one.parents for one in questions], yes)


def score_of(questions: Sequence[ImageQuestion], found: Mapping[str, float]) -> float:
    """The score of an image by some questions; 1 without any."""
    if [one.kind for one in questions] == [CAPTION]:
        return float(found[questions[0].question])
    counting = answered(questions, found)
    return sum(counting) / len(counting) if counting else 1.0
