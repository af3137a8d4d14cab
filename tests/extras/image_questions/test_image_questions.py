"""Questions of captions, asked of images: which are asked, and the tables of verified images and pairs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spacy.language import Language

from tests.generators.image_verification.finished_images import BLUE, HOME, RED, Drawn, finish, frame_of
from tests.guard.test_oracles import at_hand
from tests.models.visual_questions.tiny_models import save_blip
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.contract import check_source
from twinset.generators.image_verification.questions import LONGEST
from twinset.generators.image_verification.source import ImageVerification
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.language_models.answers import Answer, Request, ShownImage
from twinset.models.spacy_pipelines import find_pipeline
from twinset.models.visual_questions.settings import VisualQuestions
from twinset.shards.contracts import Context
from twinset.shards.storage.tar_reader import BrokenTar
from twinset_extras.image_questions.asking import KINDS, prepared, questions_of
from twinset_extras.image_questions.questions import FactQuestion, counted
from twinset_extras.image_questions.settings import Facts
from twinset_extras.pair_verification.source import PairVerification
from twinset_extras.ratings.released import rows_of

Yes = Callable[[ShownImage, str], float | None]
ANSWERING = VisualQuestions(kind="vqa", model="given")
DOG, CAT = "A red dog on a bench.", "A red cat on a bench."


class GivenAnswers:
    """An engine that answers as it is given, and remembers what it was asked."""

    def __init__(self, yes: Yes) -> None:
        self.yes, self.met = yes, list[Request]()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.met += requests
        return [Answer(probability=self.yes(request.images[0], request.text)) for request in requests]


@dataclass(frozen=True)
class DrawnPair:
    """A red and a blue image, and their captions; as `Drawn`."""

    captions: tuple[str, str]
    caption_id: str = "7"
    number = 0

    def sample(self, key: str, group: str) -> Pair:
        images = {f"image{side}": frame_of(f"{key}#{side}", colour) for side, colour in enumerate((RED, BLUE))}
        captions = {"captions0": self.captions[:1], "captions1": self.captions[1:]}
        provenance = {"caption_id": self.caption_id}
        return Pair(key=key, group=group, split="test", provenance=provenance, change="made", **images, **captions)


def opened(
    folder: Path, drawn: Sequence[Any], patch: pytest.MonkeyPatch, yes: Yes, **given: Any
) -> tuple[Any, GivenAnswers]:
    """The source of the images or pairs, opened on a stage of what was drawn, and its engine."""
    earlier, engine = finish(folder, drawn), GivenAnswers(yes)
    patch.setattr(VisualQuestions, "open", lambda _: engine)
    source: Any
    if isinstance(drawn[0], DrawnPair):
        source = PairVerification(kind="pair-verification", pairs=HOME, engine=ANSWERING, **given)
    else:
        asks = {"images": HOME, "questions": {"kind": "facts"}, "engine": ANSWERING, **given}
        source = ImageVerification(kind="image-verification", **asks)
    return source.open(Context("verified", earlier=lambda _: earlier)), engine


def test_a_row_has_questions_answers_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The image shows a dog that is not red, on a bench; so it fits half of the original caption.
    def yes(_: ShownImage, question: str) -> float:
        return 0.1 if "red" in question or "cat" in question else 0.9

    generator, engine = opened(tmp_path, [Drawn(DOG, CAT, 2)], monkeypatch, yes)
    (planned,) = generator.plan()
    ((row,),) = (made.rows for made in generator.make([planned]))
    assert list(row) == generator.row_schema.names
    assert (row["caption"], row["negative_caption"], row["caption_id"], row["number"]) == (DOG, CAT, "7", 2)
    answers = json.loads(row["questions"])
    assert [(answer["question"], answer["parents"], answer["kind"], answer["yes"]) for answer in answers] == [
        ("Is there a dog?", [], "entity", 0.9),
        ("Is there a bench?", [], "entity", 0.9),
        ("Is the dog red?", [1], "attribute", 0.1),
        ("Is the dog on the bench?", [1, 2], "relation", 0.9),
    ]
    assert (row["question_count"], row["caption_score"], row["original_score"]) == (4, 0.75, 0.25)
    assert (row["image_key"], row["image_sha256"]) == (planned.image_key, planned.image_sha256)
    # Both captions have the bench, which is asked for once.
    assert [request.text for request in engine.met].count("Is there a bench?") == 1
    (shown,) = {request.images for request in engine.met}
    assert shown[0].media_type == "image/jpeg" and shown[0].content[:2] == b"\xff\xd8"


def test_an_image_that_changed_since_the_plan_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator, _ = opened(tmp_path, [Drawn(DOG, CAT, colour=RED)], monkeypatch, lambda *_: 1.0)
    planned = list(generator.plan())
    finish(tmp_path, [Drawn(DOG, CAT, colour=BLUE)])
    with pytest.raises(BrokenTar, match="is not the one that was planned from"):
        list(generator.make(planned))


def test_the_contract_is_kept_and_rows_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    drawn = [Drawn(DOG, CAT, number, colour) for number, colour in enumerate((RED, BLUE, (90, 90, 90)))]
    drawn += [Drawn("!", DOG, caption_id="8"), Drawn(CAT, DOG, caption_id="9", colour=BLUE)]
    pairs = [(DOG, CAT), (CAT, CAT), (CAT, "Two cats.")]
    drawn_pairs = [DrawnPair(captions, caption_id=str(number)) for number, captions in enumerate(pairs)]
    engine = VisualQuestions(kind="vqa", model=str(save_blip(tmp_path / "blip")), micro_batch=4)
    source = ImageVerification(kind="image-verification", images=HOME, questions={"kind": "facts"}, engine=engine)
    of_pairs = PairVerification(kind="pair-verification", pairs=HOME, engine=engine)
    for part, stage in ((of_pairs, finish(tmp_path / "pairs", drawn_pairs)), (source, finish(tmp_path, drawn))):
        context = Context("verified", earlier=lambda _, stage=stage: stage)
        check_source(part, context)
        generator: Any = part.open(context)
        planned = list(generator.plan())
        together = list(generator.make(planned))
        assert together == [made for candidate in planned for made in generator.make([candidate])]
    assert generator.runs_on() == "cpu" and {"answers", "pipeline", "vocabulary"} == set(generator.weights())
    lacking = source.model_copy(update={"questions": Facts(kind="facts", pipeline=str(tmp_path / "none"))})
    with pytest.raises(WrongUse, match=r"subsets\.v\.source\.questions\.pipeline: "):
        lacking.check_inputs("subsets.v.source", ["models", "media"])


def test_a_child_counts_only_if_its_parents_are_yes() -> None:
    # dog, ball, red (of the ball), dog on ball; no question has the number 9.
    parents: list[tuple[int, ...]] = [(), (9,), (2,), (1, 2)]
    questions = [FactQuestion("", str(n), n, about, (), ()) for n, about in enumerate(parents, 1)]
    for yes, expected in {"1111": "1111", "1011": "1000", "0111": "0110", "1101": "1101"}.items():
        right = counted(questions, {str(n): float(value) for n, value in enumerate(yes, 1)})
        assert "".join(str(int(value)) for value in right) == expected


@pytest.fixture(scope="module")
def nlp() -> Language:
    return parser_of(find_pipeline()).nlp


def asked(nlp: Language, caption: str) -> list[FactQuestion]:
    return questions_of(nlp(prepared(caption)))


def test_questions_and_their_parents(nlp: Language) -> None:
    questions = asked(nlp, "A woman is handing a tennis ball to a woman holding an umbrella.")
    assert [(fact.id, fact.parents, fact.question) for fact in questions] == [
        (1, (), "Is there a woman?"),
        (2, (), "Is there a tennis ball?"),
        (3, (), "Is there another woman?"),
        (4, (), "Is there an umbrella?"),
        (5, (1, 2), "Is the woman handing the tennis ball?"),
        (6, (1, 3), "Is the woman handing the tennis ball to the other woman?"),
        (7, (3, 4), "Is the other woman holding the umbrella?"),
    ]


@pytest.mark.parametrize(
    ("caption", "question", "words"),
    [
        ("The caramel-colored kitten is on a bed.", "Is the kitten caramel-colored?", ("kitten", "caramel-colored")),
        ("A man in a green suit leaning over a laptop", "Is the man wearing a suit?", ("man", "suit", "wear")),
        ("A boy standing in the door of a bus.", "Does the bus have a door?", ("bus", "door", "have")),
        ("Statue of a man tripping over a cat.", "Is there a statue of a man?", ("statue", "man", "of")),
        ("The boat sits in the lake below the mountain.", "Does the boat sit in the lake?", ("boat", "lake", "sit in")),
        ("A pair of men playing frisbee on a field.", "Are there two men?", ("men", "==2")),
        ("a train on a track near many trees", "Are there many trees?", ("trees", "many")),
        ("the word 'START' on a blue t-shirt", 'Does the image show the text "START"?', ("text", "START")),
        ("Black and white photograph of a bed.", "Is the photograph black and white?", None),
        ("THE BOAT IS IN THE OCEAN AT NIGHT.", "Is it night?", None),
        ("Woman dressed in black, smiling", "Is the woman dressed in black?", ("woman", "dressed in black")),
    ],
)
def test_a_fact_is_asked_for(nlp: Language, caption: str, question: str, words: tuple[str, ...] | None) -> None:
    questions = {fact.question: fact.words for fact in asked(nlp, caption)}
    assert question in questions
    assert words is None or questions[question] == words


def test_what_is_not_said_is_not_asked(nlp: Language) -> None:
    for caption, not_asked in {
        "A table without a cat.": "cat",
        "A pair of glasses under a monitor.": "two",
        "A woman with rings all over her face.": "Is the woman over",
        "A photo of a dog and a cat.": "Is there a photo",
    }.items():
        questions = [fact.question for fact in asked(nlp, caption)]
        assert questions and not any(not_asked in question for question in questions), caption


def test_a_caption_that_names_nothing_has_no_question(nlp: Language) -> None:
    for caption in ("   ", "!!!", "12:43", "собака сидит", "🐕🐕", "and of the"):
        assert asked(nlp, caption) == [], caption


def test_order_and_parents_hold_for_any_caption(nlp: Language) -> None:
    captions = sorted({row["text"] for _, row in rows_of(at_hand("dsg") / "dsg-1k-anns.csv", ("text",))})[::12]
    for doc in nlp.pipe(captions):
        questions = questions_of(doc)
        assert [fact.id for fact in questions] == list(range(1, len(questions) + 1))
        assert len({fact.question for fact in questions}) == len(questions)
        kinds = [KINDS.index(fact.kind) for fact in questions]
        assert kinds == sorted(kinds)
        for fact in questions:
            assert fact.question.endswith("?") and "  " not in fact.question and fact.question[0].isupper()
            assert all(questions[parent - 1].kind == "entity" for parent in fact.parents)
            assert len(fact.parents) == {"global": 0, "entity": 0, "count": 1, "attribute": 1}.get(fact.kind, 2), fact


def judged(
    folder: Path,
    patch: pytest.MonkeyPatch,
    captions: tuple[str, str],
    wrong: tuple[str, ...] = (),
    threshold: float | None = 1.0,
) -> Any:
    """What becomes of a pair whose images show their captions. wrong: what is answered the other way, each with the
    number of its image before."""
    images: list[ShownImage] = []
    nouns = [set(caption.lower().strip(".").split()) for caption in captions]

    def yes(image_shown: ShownImage, question: str) -> float:
        if image_shown not in images:
            images.append(image_shown)
        image = images.index(image_shown)
        content = set(question.lower().strip("?").split()) - {"is", "there", "the", "a", "are", "only"}
        shown = {word.rstrip("s") for word in content} <= {word.rstrip("s") for word in nouns[image]}
        return 0.9 if shown is not (f"{image}: {question}" in wrong) else 0.1

    generator, _ = opened(folder, [DrawnPair(captions)], patch, yes, threshold=threshold)
    (made,) = generator.make(list(generator.plan()))
    return made


def test_a_row_has_every_answer_of_both_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = judged(tmp_path, monkeypatch, (DOG, CAT)).rows
    generator, _ = opened(tmp_path, [DrawnPair((DOG, CAT))], monkeypatch, lambda *_: 1.0)
    (planned,) = generator.plan()
    assert list(row) == generator.row_schema.names
    assert (row["subject"], row["caption0"], row["caption1"]) == (planned.subject, DOG, CAT)
    assert (row["question_count"], row["distinguishing_count"]) == (8, 6)
    assert (row["score0"], row["score1"], row["distinguishing_score"]) == (1, 1, 1)
    answers = {
        (asked["caption"], asked["question"]): (asked["distinguishes"], asked["yes"])
        for asked in json.loads(row["questions"])
    }
    assert answers[0, "Is the dog red?"] == (True, [0.9, 0.1]) and answers[1, "Is the cat red?"] == (True, [0.1, 0.9])
    assert answers[0, "Is there a bench?"] == answers[1, "Is there a bench?"] == (False, [0.9, 0.9])
    # Kept by the key of the pair, as `screened-pairs` reads people's decisions.
    assert planned.identity == json.dumps([planned.subject])


@pytest.mark.parametrize(
    ("wrong", "reason", "detail"),
    [
        ("0: Is there a dog?", "wrong-entity", "of caption 0: Is there a dog? yes 0.10 and 0.10 for image 0 and 1"),
        ("1: Is there a dog?", "wrong-entity", "of caption 0: Is there a dog? yes 0.90 and 0.90 for image 0 and 1"),
        ("1: Is the cat red?", "wrong-attribute", "of caption 1: Is the cat red? yes 0.10 and 0.10 for image 0 and 1"),
        # What a dog is like says nothing of an image without one.
        ("1: Is the dog red?", None, ""),
    ],
)
def test_a_pair_is_rejected_by_the_first_question_that_is_answered_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str | None, detail: str
) -> None:
    result = judged(tmp_path, monkeypatch, (DOG, CAT), (wrong,))
    assert isinstance(result, TableRows) if reason is None else (result.reason, result.detail) == (reason, detail)
    # However low the threshold, the edit must be seen; without one nothing is rejected.
    low = judged(tmp_path, monkeypatch, (DOG, CAT), (wrong,), threshold=0.1)
    assert isinstance(low, TableRows) is (reason is None)
    row = judged(tmp_path, monkeypatch, (DOG, CAT), (wrong,), threshold=None).rows[0]
    assert (row["distinguishing_score"] < 1) is (reason is not None)


def test_what_both_captions_say_is_measured_by_the_threshold_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions = "A dog and a bench.", "A cat and a bench."
    wrong = ("1: Is there a bench?",)
    assert judged(tmp_path, monkeypatch, captions, wrong).reason == "wrong-entity"
    kept = judged(tmp_path, monkeypatch, captions, wrong, threshold=0.5).rows[0]
    assert (kept["score0"], kept["score1"], kept["distinguishing_score"]) == (1, 0.5, 1)


@pytest.mark.parametrize(
    ("captions", "telling"),
    [
        # One dog is a dog too: only the number tells them apart.
        (("Two dogs on a bench.", "One dog on a bench."), ["Are there two dogs?"]),
        (("Three hot dogs.", "Two hot dogs."), ["Are there three hot dogs?", "Are there two hot dogs?"]),
        (("A car on a road.", "A road with no car."), ["Is there a car?", "Is the car on the road?"]),
        (("A dog and another dog.", "A dog."), ["Is there another dog?"]),
    ],
)
def test_which_questions_tell_two_captions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captions: tuple[str, str], telling: list[str]
) -> None:
    row = judged(tmp_path, monkeypatch, captions, threshold=None).rows[0]
    assert [asked["question"] for asked in json.loads(row["questions"]) if asked["distinguishes"]] == telling
    assert row["distinguishing_count"] == len(telling)


def test_pairs_that_cannot_be_asked_about_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for captions, reason in {
        ("A dog.", "Dogs."): "no-question",
        ("一只狗", "一只猫"): "no-question",
        (DOG, "A dog. " + "x" * LONGEST): "caption-too-long",
    }.items():
        rejected = judged(tmp_path, monkeypatch, captions)
        assert (rejected.reason, rejected.detail) == (reason, captions[0])


def test_an_answer_that_is_neither_yes_nor_no_rejects_that_pair_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [DrawnPair((DOG, CAT), "7"), DrawnPair(("A bus.", CAT), "8"), DrawnPair((DOG, CAT), "9")]
    generator, _ = opened(tmp_path, drawn, monkeypatch, lambda _, question: None if "bus" in question else 1.0)
    made = list(generator.make(list(generator.plan())))
    assert [result.reason if isinstance(result, Rejected) else "" for result in made] == ["", "no-answer", ""]
