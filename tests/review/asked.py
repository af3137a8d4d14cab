"""Tasks of every kind of question, about images that are painted here: what the page is tested with."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.parts import LeftOut
from twinset.generators.decisions.question import ReviewQuestion, TaskCandidate, question_of
from twinset.generators.decisions.source import Decisions
from twinset.review.access import Access, Person
from twinset.review.app import make_app
from twinset.review.desk import ReviewDesk
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewStage, ReviewTask, ReviewTasks
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

SECRET = bytes(range(32))
COLOURS = ("crimson", "teal", "gold", "slateblue")
#: Texts and number of images of a task, by kind of question; `match-text` is a match of an image and two texts.
SHAPES = {
    "best-image": (("A red ball on a table",), 4),
    "fits-caption": (("A dog beside a cat",), 2),
    "keep-pair": (("She opens the door", "She closes the door"), 2),
    "match": (("A cup left of a plate",), 2),
    "match-text": (("A cup left of a plate", "A plate left of a cup"), 1),
}


class Painted(Decisions):
    """Pictures of tasks that no stage holds: a colour for each number of an image."""

    kind: Literal["test-painted"] = "test-painted"
    question: str = "best-image"

    @property
    def asks(self) -> type[ReviewQuestion]:  # type: ignore[override]  # one class asks every question
        return type(question_of(self.question))

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        return iter(())

    @property
    def pictured(self) -> FinishedStage:
        raise NotImplementedError

    def picture(self, task: TaskCandidate, number: int) -> bytes:
        content = io.BytesIO()
        Image.new("RGB", (640, 272), COLOURS[number]).save(content, "PNG")
        return content.getvalue()


def candidate(stage: str, shape: str, number: int, **changes: Any) -> TaskCandidate:
    texts, images = SHAPES[shape]
    key = sample_key(stage, shape, number)
    fields = {
        "key": key,
        "group": key,
        "identity": identity_of(shape, number),
        "question": shape.removesuffix("-text"),
        "texts": tuple(f"{text} (task {number})" for text in texts),
        "images": tuple(f"{key}/{n}" for n in range(images)),
        "image_tars": ("test/00000.tar",) * images,
        "image_sha256s": (f"{number:064x}",) * images,
        "subject": f"subject-{number}",
    }
    return TaskCandidate(**{**fields, **changes})


def stage_of(name: str, candidates: Sequence[TaskCandidate], out: Path, **settings: Any) -> ReviewStage:
    source = Painted(question=candidates[0].question, **settings).open(Context(name))
    tasks = tuple(
        ReviewTask(task.binding[:40], task, (name, task.key, task.binding), source.needed(task), source.survey)
        for task in candidates
    )
    return ReviewStage(name, source, out / "_review" / "answers.sqlite", tasks)


class Planned(ReviewTasks):
    """Stages that stand in for what lies below OUT."""

    def __init__(self, out: Path, stages: Sequence[ReviewStage]) -> None:
        self.planned = [*stages]
        super().__init__(Store(str(out)), SECRET)

    def _stamps_now(self) -> dict[str, str]:
        return {}

    def _stages(self) -> list[ReviewStage]:
        return self.planned


def survey_of(out: Path, instances: int, **settings: Any) -> ReviewStage:
    """A stage that asks four questions about each instance as BiVLC did: 25 of an annotator."""
    tasks = [
        candidate("survey", "match" if number % 4 > 1 else "match-text", number, subject=f"subject-{number // 4}")
        for number in range(4 * instances)
    ]
    return stage_of("survey", tasks, out, protocol="bivlc", **settings)


def painted_desk(out: Path, stages: Sequence[ReviewStage], **settings: Any) -> ReviewDesk:
    return ReviewDesk(Planned(out, stages), AnswerStore(out / "_review" / "answers.sqlite"), **settings)


def all_kinds(out: Path, tasks: int = 3) -> list[ReviewStage]:
    return [stage_of(shape, [candidate(shape, shape, n) for n in range(tasks)], out) for shape in SHAPES]


def painted_app(
    out: Path, stages: Sequence[ReviewStage], annotators: Sequence[str] = ("anna", "ben"), **settings: Any
) -> tuple[Any, dict[str, str]]:
    """The app of a desk, and the tokens of links by name, with that of ``admin``. settings: of the access."""
    access = Access(SECRET, annotators, **settings)
    people = [*(Person(name, "annotator") for name in annotators), Person("admin", "admin")]
    app = make_app(painted_desk(out, stages), access, "demo")
    return app, {person.name: access.token(person) for person in people}
