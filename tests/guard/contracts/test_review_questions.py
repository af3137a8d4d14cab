"""The contract of review questions: a layout of different values, which are its answers."""

import pytest

from twinset.generators.decisions.question import QUESTIONS, TaskCandidate, question_of

#: By kind: the number of texts and of images of a task.
SHOWN = {"best-image": (1, 3), "fits-caption": (1, 2), "keep-pair": (2, 2), "match": (2, 1), "rank-images": (1, 3)}


def task(kind: str) -> TaskCandidate:
    assert kind in SHOWN, f"review question {kind} has no case: write what it shows in SHOWN"
    texts, images = SHOWN[kind]
    names = tuple(f"image{n}" for n in range(images))
    said = tuple(f"text {n}" for n in range(texts))
    empty = ("",) * images
    return TaskCandidate(
        key="t-a",
        group="g",
        question=kind,
        texts=said,
        images=names,
        image_tars=empty,
        image_sha256s=empty,
        subject="s",
    )


@pytest.mark.parametrize("kind", QUESTIONS.own())
def test_a_question_keeps_the_contract(kind: str) -> None:
    question, asked = question_of(kind), task(kind)
    assert question.name == kind and question.words.title and question.words.instructions
    layout = question.layout(asked)
    assert layout == question.layout(asked) and len({*layout.values}) == len(layout.values) >= 2
    assert {*question.drops} <= {*layout.values}
    assert all(question.takes(asked, one) for one in layout.values) and not question.takes(asked, "of no option")
