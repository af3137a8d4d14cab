"""Questions of captions: what is asked, and what must hold of any caption."""

from pathlib import Path

import pytest
from spacy.language import Language

from twinset.generators.image_verification.questions import ImageQuestion
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.spacy_pipelines import find_pipeline
from twinset_extras.image_questions.asking import KINDS, prepared, questions_of
from twinset_extras.ratings.released import rows_of

DSG = Path(__file__).parents[3] / "../shared/data/dsg"


@pytest.fixture(scope="module")
def nlp() -> Language:
    return parser_of(find_pipeline()).nlp


def asked(nlp: Language, caption: str) -> list[ImageQuestion]:
    return questions_of(nlp(prepared(caption)))


@pytest.mark.parametrize(
    ("caption", "questions"),
    [
        (
            "A woman is handing a tennis ball to a woman holding an umbrella.",
            [
                (1, (), "Is there a woman?"),
                (2, (), "Is there a tennis ball?"),
                (3, (), "Is there another woman?"),
                (4, (), "Is there an umbrella?"),
                (5, (1, 2), "Is the woman handing the tennis ball?"),
                (6, (1, 3), "Is the woman handing the tennis ball to the other woman?"),
                (7, (3, 4), "Is the other woman holding the umbrella?"),
            ],
        ),
        (
            "Two dogs on the street.",
            [
                (1, (), "Are there dogs?"),
                (2, (), "Is there a street?"),
                (3, (1,), "Are there two dogs?"),
                (4, (1, 2), "Are the dogs on the street?"),
            ],
        ),
        (
            "Black and white photograph of a bed with a laptop.",
            [
                (1, (), "Is this a photograph?"),
                (2, (), "Is the photograph black and white?"),
                (3, (), "Is there a bed?"),
                (4, (), "Is there a laptop?"),
                (5, (3, 4), "Does the bed have a laptop?"),
            ],
        ),
        (
            "THE BOAT IS IN THE OCEAN AT NIGHT.",
            [
                (1, (), "Is it night?"),
                (2, (), "Is there a boat?"),
                (3, (), "Is the ocean visible?"),
                (4, (2, 3), "Is the boat in the ocean?"),
            ],
        ),
    ],
)
def test_questions_and_their_parents(
    nlp: Language, caption: str, questions: list[tuple[int, tuple[int, ...], str]]
) -> None:
    assert [(one.id, one.parents, one.question) for one in asked(nlp, caption)] == questions


@pytest.mark.parametrize(
    ("caption", "question", "words"),
    [
        (
            "A red plate topped with broccoli.",
            "Is the plate topped with broccoli?",
            ("plate", "broccoli", "topped with"),
        ),
        ("The caramel-colored kitten is on a bed.", "Is the kitten caramel-colored?", ("kitten", "caramel-colored")),
        ("A boy wearing a green shirt posing with some fruit.", "Is the boy posing with the fruit?", None),
        ("A man in a green suit leaning over a laptop", "Is the man wearing a suit?", ("man", "suit", "wear")),
        ("A boy standing in the door of a bus.", "Does the bus have a door?", ("bus", "door", "have")),
        ("Statue of a man tripping over a cat.", "Is there a statue of a man?", ("statue", "man", "of")),
        ("a mountain with a cloud hanging over it", "Is the cloud hanging over the mountain?", None),
        ("A zebra to the right of a fire hydrant.", "Is the zebra to the right of the fire hydrant?", None),
        ("The boat sits in the lake below the mountain.", "Does the boat sit in the lake?", ("boat", "lake", "sit in")),
        ("A chair in the corner on a boat.", "Is the chair in the corner?", ("chair", "in the corner")),
        ("A pair of men playing frisbee on a field.", "Are there two men?", ("men", "==2")),
        ("a train on a track near many trees", "Are there many trees?", ("trees", "many")),
        ("the word 'START' on a blue t-shirt", 'Does the image show the text "START"?', ("text", "START")),
        ("two red flowers and three white flowers", "Are there three white flowers?", ("flowers", "==3")),
        ("Woman dressed in black, smiling", "Is the woman dressed in black?", ("woman", "dressed in black")),
    ],
)
def test_a_fact_is_asked_for(nlp: Language, caption: str, question: str, words: tuple[str, ...] | None) -> None:
    found = {one.question: one.words for one in asked(nlp, caption)}
    assert question in found
    assert words is None or found[question] == words


@pytest.mark.parametrize(
    ("caption", "not_asked"),
    [
        ("A table without a cat.", "cat"),
        ("There are no people on the beach.", "people"),
        ("A large group of dogs.", "large"),
        ("A pair of glasses under a monitor.", "two"),
        ("A woman with rings all over her face.", "Is the woman over"),
        ("A photo of a dog and a cat.", "Is there a photo"),
    ],
)
def test_what_is_not_said_is_not_asked(nlp: Language, caption: str, not_asked: str) -> None:
    questions = [one.question for one in asked(nlp, caption)]
    assert questions and not any(not_asked in question for question in questions)


@pytest.mark.parametrize(
    "caption", ["", "   ", "!!!", "12:43", "一只狗坐在长椅上", "собака сидит", "🐕🐕", "and of the"]
)
def test_a_caption_that_names_nothing_has_no_question(nlp: Language, caption: str) -> None:
    assert asked(nlp, caption) == []


def test_order_and_parents_hold_for_any_caption(nlp: Language) -> None:
    if not DSG.is_dir():
        pytest.skip("the released questions are not in ../shared/data/dsg on this machine")
    captions = sorted({row["text"] for _, row in rows_of(DSG / "dsg-1k-anns.csv", ("text",))})[::6]
    for doc in nlp.pipe(captions):
        found = questions_of(doc)
        assert [one.id for one in found] == list(range(1, len(found) + 1))
        assert len({one.question for one in found}) == len(found)
        assert [KINDS.index(one.kind) for one in found] == sorted(KINDS.index(one.kind) for one in found)
        for one in found:
            assert one.question.endswith("?") and "  " not in one.question and one.question[0].isupper()
            assert all(found[parent - 1].kind == "entity" for parent in one.parents)
            assert len(one.parents) == {"global": 0, "entity": 0, "count": 1, "attribute": 1}.get(one.kind, 2), one


def test_questions_do_not_depend_on_the_captions_beside(nlp: Language) -> None:
    captions = ["A red ball to the left of a blue box.", "Two men in suits.", "A dog."]
    assert [questions_of(doc) for doc in nlp.pipe(captions)] == [asked(nlp, caption) for caption in captions]
