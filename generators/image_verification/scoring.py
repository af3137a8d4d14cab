"""The score of an image: the share of its questions that are answered yes, by the dependency rule (Cho et al. 2023).

A child counts only if its parents are answered yes. As in the released code, the answers to the parents decide, not
whether these count themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of many images, a row each, in any order.

    image: numbers of the images, from 0. question: its id, different for each of an image.
    child, parent: a row and the id of one of its parents, as many pairs as there are; an id that no row of the same
    image has is ignored.
    """

    image: Ints
    question: Ints
    child: Ints
    parent: Ints


def asked(image: Sequence[int] | Ints, question: Sequence[int] | Ints, parents: Sequence[Sequence[int]]) -> Asked:
    """The questions with their parents given as lists, a list a row."""
    counts = np.fromiter((len(one) for one in parents), np.int64, len(parents))
    flat = np.fromiter((number for one in parents for number in one), np.int64, int(counts.sum()))
    return Asked(
        np.asarray(image, np.int64), np.asarray(question, np.int64), np.repeat(np.arange(len(parents)), counts), flat
    )


def counted(questions: Asked, yes: Bools) -> Bools:
    """Which rows count: those answered yes whose parents are all answered yes."""
    found = np.array(yes, dtype=np.bool_)
    if not len(questions.child):
        return found
    highest = int(max(questions.question.max(), questions.parent.max())) + 1
    rows = questions.image * highest + questions.question
    order = np.argsort(rows, kind="stable")
    wanted = questions.image[questions.child] * highest + questions.parent
    at = np.minimum(np.searchsorted(rows, wanted, sorter=order), len(rows) - 1)
    parent = order[at]
    refused = (rows[parent] == wanted) & ~yes[parent]
    found[questions.child[refused]] = False
    return found


def scores(questions: Asked, yes: Bools) -> Floats:
    """The score of each image, 0 to 1, by its number; NaN for a number without questions."""
    asked_of = np.bincount(questions.image)
    right = np.bincount(questions.image, counted(questions, yes), len(asked_of))
    with np.errstate(invalid="ignore"):
        return np.asarray(right / asked_of, np.float64)
