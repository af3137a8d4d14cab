"""What the admin sees and does: progress, pace, agreement, gold tasks, disagreements to settle, export."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.background import BackgroundTask

from twinset.generators.decisions.answers import Answer
from twinset.review.access import Access, Refused
from twinset.review.desk import ReviewDesk
from twinset.review.exchange.forms import FORMS
from twinset.review.queue import Counts
from twinset.review.replies import person_of, picture, shown
from twinset.review.tasks import ReviewTask

MOST_SHOWN = 20  # disagreements on one page


@dataclass(frozen=True, slots=True)
class Worker:
    """An annotator's work. per_hour: answers by question. has_link: whether the page was started with it."""

    name: str
    counts: Counts
    per_hour: Mapping[str, int]
    has_link: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a disagreement. voters: who took it, with their reasons. image: its address, if it shows one."""

    value: str
    label: str
    image: str | None
    text: str | None
    voters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A task whose answers are a tie. texts, images: the question itself."""

    task: ReviewTask
    texts: tuple[str, ...]
    images: tuple[str, ...]
    choices: tuple[Choice, ...]


def add_admin(app: FastAPI, desk: ReviewDesk, access: Access, dataset: str) -> None:
    """Add the admin's pages to the app; the guard lets nobody else reach them."""

    @app.get("/admin")
    def overview(request: Request) -> Response:
        ties = list(islice(disagreements(desk), MOST_SHOWN))
        stages = [
            {
                "stage": one,
                "counts": desk.stage_counts(one),
                "enough": desk.has_enough(one),
                "agreement": desk.agreement(one),
            }
            for one in desk.tasks.now().stages.values()
        ]
        reply = shown(
            "admin.html.j2",
            csrf=access.csrf(person_of(request)),
            dataset=dataset,
            stages=stages,
            workers=_workers(desk, access),
            disagreements=ties,
            most=MOST_SHOWN,
            forms=[name for name, form in FORMS.items() if not form.pictured],
        )
        reply.background = BackgroundTask(desk.announce)
        return reply

    @app.post("/admin/adjudicate")
    async def adjudicate(request: Request) -> Response:
        given = parse_qs((await request.body()).decode("utf-8", "replace"))
        task, value = (given.get(name, [""])[0] for name in ("id", "value"))
        stage = desk.adjudicate(task, value)
        later = BackgroundTask(desk.announce, [stage])
        return RedirectResponse("/admin#disagreements", 303, background=later)

    @app.get("/admin/image/{name}")
    def image(name: str) -> Response:
        return picture(desk, name)

    @app.get("/admin/export/{form}")
    def export(form: str) -> Response:
        chosen = FORMS.get(form)
        if chosen is None or chosen.pictured:
            raise Refused(404, "There is no such file here; twinset review OUT --out FILE writes those with images.")
        answered = [(task, desk.answers_to(task)) for task in desk.tasks.now().tasks]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"answers{chosen.suffix}"
            chosen.write(path, answered, desk.tasks.picture)
            content = path.read_bytes()
        headers = {"Content-Disposition": f'attachment; filename="answers{chosen.suffix}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)


def disagreements(desk: ReviewDesk) -> Iterator[Disagreement]:
    """Tasks whose answers are a tie, in the order of their plans."""
    for task in desk.ties():
        yield _disagreement(desk, task, desk.answers_to(task))


def _disagreement(desk: ReviewDesk, task: ReviewTask, answers: list[Answer]) -> Disagreement:
    candidate, layout = task.candidate, task.question.layout(task.candidate)

    def url(number: int) -> str:
        return f"/admin/image/{desk.tasks.image_id(task, number)}"

    def voters(value: str) -> tuple[str, ...]:
        given = [one for one in answers if one.answer == value]
        return tuple(f"{one.annotator} ({one.reason})" if one.reason else one.annotator for one in given)

    # A single option comes last, at the right, as on the page of tasks.
    choices = tuple(
        Choice(
            value=one.value,
            label=one.label,
            image=None if one.image is None else url(one.image),
            text=None if one.text is None else candidate.texts[one.text],
            voters=voters(one.value),
        )
        for one in ((*layout.extra, *layout.options) if len(layout.options) == 1 else (*layout.options, *layout.extra))
    )
    texts = tuple(candidate.texts[number] for number in layout.texts)
    return Disagreement(task, texts, tuple(map(url, layout.images)), choices)


def _workers(desk: ReviewDesk, access: Access) -> list[Worker]:
    """Those with a link, and others whose answers are in."""
    answered = {
        one.annotator for task in desk.tasks.now().tasks for one in desk.answers_to(task) if not one.adjudicated
    }
    names = [*access.annotators, *sorted(answered - {*access.annotators})]
    return [Worker(name, desk.counts(name), desk.pace(name), access.has_link(name)) for name in names]
