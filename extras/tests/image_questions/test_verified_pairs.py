"""The table of verified pairs: questions of both captions, asked of both images."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from extras.tests.image_questions.test_verified_texts import Told
from tests.generators.image_verification.finished_images import BLUE, HOME, RED, finish, frame_of
from tests.models.visual_questions.tiny_models import save_blip
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.contract import check_source
from twinset.generators.image_verification.questions import LONGEST
from twinset.generators.screened_pairs import ScreenedPairs
from twinset.generators.triplets.source import Triplets
from twinset.models.language_models.answers import Answer, Request, ShownImage
from twinset.models.visual_questions.settings import VisualQuestions
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.source import EditedPhotos
from twinset_extras.pair_verification.source import PairVerification


@dataclass(frozen=True)
class DrawnPair:
    """A red and a blue image, and their captions; as `Drawn`."""

    captions: tuple[str, str]
    caption_id: str = "7"
    number = 0

    def sample(self, key: str, group: str) -> Pair:
        return Pair(
            key=key,
            group=group,
            split="test",
            provenance={"caption_id": self.caption_id},
            change="made",
            image0=frame_of(f"{key}#0", RED),
            image1=frame_of(f"{key}#1", BLUE),
            captions0=self.captions[:1],
            captions1=self.captions[1:],
        )


def opened(
    folder: Path,
    drawn: Sequence[DrawnPair],
    patch: pytest.MonkeyPatch,
    yes: Callable[[ShownImage, str], float],
    **more: Any,
) -> tuple[Any, Told]:
    earlier, engine = finish(folder, drawn), Told(yes)
    patch.setattr(VisualQuestions, "open", lambda _: engine)
    answering = VisualQuestions(kind="vqa", model="told")
    source = PairVerification(kind="pair-verification", pairs=HOME, engine=answering, **more)
    return source.open(Context("verified", earlier=lambda _: earlier)), engine


DOG, CAT = "A red dog on a bench.", "A red cat on a bench."


def judged(
    folder: Path,
    patch: pytest.MonkeyPatch,
    captions: tuple[str, str],
    wrong: tuple[str, ...] = (),
    threshold: float | None = 1.0,
) -> Any:
    """What becomes of a pair whose images show their captions. wrong: what is answered the other way, each with the
    number of its image before."""
    asked: list[ShownImage] = []
    nouns = [set(caption.lower().strip(".").split()) for caption in captions]

    def yes(one: ShownImage, question: str) -> float:
        if one not in asked:
            asked.append(one)
        image = asked.index(one)
        content = set(question.lower().strip("?").split()) - {"is", "there", "the", "a", "are", "only"}
        shown = {word.rstrip("s") for word in content} <= {word.rstrip("s") for word in nouns[image]}
        return 0.9 if shown is not (f"{image}: {question}" in wrong) else 0.1

    generator, _ = opened(folder, [DrawnPair(captions)], patch, yes, threshold=threshold)
    (planned,) = generator.plan()
    (found,) = generator.make([planned])
    return found


def test_a_row_has_every_answer_of_both_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(tmp_path, monkeypatch, (DOG, CAT))
    assert isinstance(found, TableRows)
    (row,) = found.rows
    generator, _ = opened(tmp_path, [DrawnPair((DOG, CAT))], monkeypatch, lambda *_: 1.0)
    (planned,) = generator.plan()
    assert list(row) == generator.row_schema.names
    assert (row["subject"], row["caption0"], row["caption1"]) == (planned.subject, DOG, CAT)
    assert (row["question_count"], row["distinguishing_count"]) == (8, 6)
    assert (row["score0"], row["score1"], row["distinguishing_score"]) == (1, 1, 1)
    told = [(one["caption"], one["question"], one["distinguishes"], one["yes"]) for one in json.loads(row["questions"])]
    assert told == [
        (0, "Is there a dog?", True, [0.9, 0.1]),
        (0, "Is there a bench?", False, [0.9, 0.9]),
        (0, "Is the dog red?", True, [0.9, 0.1]),
        (0, "Is the dog on the bench?", True, [0.9, 0.1]),
        (1, "Is there a cat?", True, [0.1, 0.9]),
        (1, "Is there a bench?", False, [0.9, 0.9]),
        (1, "Is the cat red?", True, [0.1, 0.9]),
        (1, "Is the cat on the bench?", True, [0.1, 0.9]),
    ]
    # Kept by the key of the pair, as `screened-pairs` reads people's decisions.
    assert planned.identity == json.dumps([planned.subject])


@pytest.mark.parametrize(
    ("wrong", "reason", "detail"),
    [
        ("0: Is there a dog?", "wrong-entity", "of caption 0: Is there a dog? yes 0.10 and 0.10 for image 0 and 1"),
        ("1: Is there a dog?", "wrong-entity", "of caption 0: Is there a dog? yes 0.90 and 0.90 for image 0 and 1"),
        ("0: Is there a cat?", "wrong-entity", "of caption 1: Is there a cat? yes 0.90 and 0.90 for image 0 and 1"),
        ("1: Is the cat red?", "wrong-attribute", "of caption 1: Is the cat red? yes 0.10 and 0.10 for image 0 and 1"),
        # What a dog is like says nothing of an image without one.
        ("1: Is the dog red?", None, ""),
    ],
)
def test_a_pair_is_rejected_by_the_first_question_that_is_answered_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str | None, detail: str
) -> None:
    found = judged(tmp_path, monkeypatch, (DOG, CAT), (wrong,))
    assert isinstance(found, TableRows) if reason is None else (found.reason, found.detail) == (reason, detail)
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
    found = judged(tmp_path, monkeypatch, captions, wrong)
    expected = "of caption 1: Is there a bench? yes 0.90 and 0.10 for image 0 and 1"
    assert (found.reason, found.detail) == ("wrong-entity", expected)
    kept = judged(tmp_path, monkeypatch, captions, wrong, threshold=0.5).rows[0]
    assert (kept["score0"], kept["score1"], kept["distinguishing_score"]) == (1, 0.5, 1)


@pytest.mark.parametrize(
    ("captions", "telling"),
    [
        # One dog is a dog too: only the number tells them apart.
        (("Two dogs on a bench.", "One dog on a bench."), ["Are there two dogs?"]),
        (("Three hot dogs.", "Two hot dogs."), ["Are there three hot dogs?", "Are there two hot dogs?"]),
        (("A red car on a road.", "A green car on a road."), ["Is the car red?", "Is the car green?"]),
        (("A car on a road.", "A road with no car."), ["Is there a car?", "Is the car on the road?"]),
        (("A dog and another dog.", "A dog."), ["Is there another dog?"]),
    ],
)
def test_which_questions_tell_two_captions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captions: tuple[str, str], telling: list[str]
) -> None:
    row = judged(tmp_path, monkeypatch, captions, threshold=None).rows[0]
    assert [one["question"] for one in json.loads(row["questions"]) if one["distinguishes"]] == telling
    assert row["distinguishing_count"] == len(telling)


@pytest.mark.parametrize(
    ("captions", "reason"),
    [
        (("A dog.", "Dogs."), "no-question"),
        ((DOG, DOG), "no-question"),
        (("一只狗", "一只猫"), "no-question"),
        (("A dog. " + "x" * LONGEST, DOG), "caption-too-long"),
        ((DOG, "A dog. " + "x" * LONGEST), "caption-too-long"),
    ],
)
def test_pairs_that_cannot_be_asked_about_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captions: tuple[str, str], reason: str
) -> None:
    found = judged(tmp_path, monkeypatch, captions)
    assert (found.reason, found.detail) == (reason, captions[0][:200])


def test_an_answer_that_is_neither_yes_nor_no_rejects_that_pair_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [DrawnPair((DOG, CAT), caption_id=str(number)) for number in range(3)]
    generator, engine = opened(tmp_path, drawn, monkeypatch, lambda *_: 1.0)
    planned = list(generator.plan())

    def ask(requests: list[Request]) -> list[Answer]:
        third = len(requests) // 2  # of three pairs, a question of the second
        return [Answer("perhaps", probability=None if n == third else 1.0) for n, _ in enumerate(requests)]

    engine.ask = ask  # type: ignore[assignment,method-assign]
    made = list(generator.make(planned))
    assert [type(one) for one in made] == [TableRows, Rejected, TableRows]
    assert isinstance(made[1], Rejected)
    assert (made[1].key, made[1].reason, made[1].detail[:9]) == (planned[1].key, "no-answer", "perhaps: ")


def test_a_stage_without_images_and_one_of_another_kind_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, _ = opened(tmp_path, [DrawnPair((DOG, CAT))], monkeypatch, lambda *_: 1.0)
    earlier = finish(tmp_path, [DrawnPair((DOG, CAT))], with_images=False)
    generator._stage = Context("verified", earlier=lambda _: earlier)
    with pytest.raises(WrongUse, match="has no image; name a stage with images"):
        list(generator.plan())
    source = generator
    assert "genecis-triplets makes triplets" in source.misfit(Triplets.model_construct(kind="genecis-triplets"))
    for fitting in (EditedPhotos, ScreenedPairs):
        assert source.misfit(fitting.model_construct()) == ""


def test_the_contract_is_kept_and_rows_do_not_depend_on_the_batch(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = [DrawnPair((DOG, CAT), caption_id=str(number)) for number in range(3)]
    drawn += [DrawnPair((CAT, CAT), caption_id="3"), DrawnPair((CAT, "Two cats."), caption_id="4")]
    earlier = finish(tmp_path, drawn)
    engine = VisualQuestions(kind="vqa", model=str(save_blip(tmp_path_factory.mktemp("blip"))), micro_batch=4)
    context = Context("verified", earlier=lambda _: earlier)
    for threshold in (None, 0.5):
        source = PairVerification(kind="pair-verification", pairs="pairs", engine=engine, threshold=threshold)
        check_source(source, context)
        generator = source.open(context)
        planned = list(generator.plan())
        assert list(generator.make(planned)) == [made for one in planned for made in generator.make([one])]


def test_an_engine_that_gives_other_results_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator, engine = opened(tmp_path, [DrawnPair((DOG, CAT))], monkeypatch, lambda *_: 1.0)
    engine.ask = lambda requests: [Answer()] * (len(requests) - 1)  # type: ignore[method-assign]
    with pytest.raises(BuildFailed, match=r"^vqa: gives no probability, .* of 14 questions; correct its package"):
        list(generator.make(list(generator.plan())))
