"""Desks of six tasks, and their answers as files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.review.asked import candidate, painted_desk, stage_of
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.desk import ReviewDesk
from twinset.review.exchange.forms import FORMS, form_of
from twinset.review.exchange.importing import Imported, import_answers
from twinset.review.showing import chosen, shown_options


def desk_of(out: Path, shape: str) -> ReviewDesk:
    return painted_desk(out, [stage_of("s", [candidate("s", shape, n) for n in range(6)], out)])


@pytest.fixture
def answered(tmp_path: Path) -> Callable[[str], ReviewDesk]:
    """A desk where anna answered five tasks of a shape in turns, and ben two."""

    def make(shape: str) -> ReviewDesk:
        desk = desk_of(tmp_path / "answered", shape)
        tasks = desk.tasks.now().tasks
        for number, task in enumerate(tasks[:5]):
            for name in ("anna", "ben")[: 1 + (number > 2)]:
                question = task.question
                names = [f"o{at}" for at in range(len(shown_options(task, name)))]
                names += [f"x{at}" for at in range(len(question.layout(task.candidate).extra))]
                option = names[number % len(names)]
                taken = chosen(task, name, option)
                assert taken is not None
                reason = min(question.reasons, default="") if taken.value in question.drops else ""
                desk.answer(name, task.id, option, reason, 1.5 + number)
        return desk

    return make


def exported(desk: ReviewDesk, path: Path, form: str) -> None:
    pairs = [(task, desk.answers_to(task)) for task in desk.tasks.now().tasks]
    FORMS[form].write(path, pairs, desk.tasks.picture)


def imported(desk: ReviewDesk, path: Path, annotator: str | None = None) -> Imported:
    [stage] = desk.tasks.now().stages.values()
    return import_answers(form_of(path).read(path), stage, desk.store, annotator, str(path))


def stored(desk: ReviewDesk) -> list[Answer]:
    return read_answers(desk.store.path, "s")
