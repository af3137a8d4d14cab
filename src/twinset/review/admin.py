"""What the admin sees: progress, pace, agreement, export."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.background import BackgroundTask

from twinset.review.access import Access, Refused
from twinset.review.desk import ReviewDesk
from twinset.review.exchange.forms import FORMS
from twinset.review.queue import Counts
from twinset.review.replies import shown


@dataclass(frozen=True, slots=True)
class Worker:
    """An annotator's work. per_hour: answers by question. has_link: whether the page was started with it."""

    name: str
    counts: Counts
    per_hour: Mapping[str, int]
    has_link: bool


def add_admin(app: FastAPI, desk: ReviewDesk, access: Access, dataset: str) -> None:
    """Add the admin's pages to the app; the guard lets nobody else reach them."""

    @app.get("/admin")
    def overview() -> Response:
        stages = [
            {"stage": one, "counts": desk.stage_counts(one), "agreement": desk.agreement(one)}
            for one in desk.tasks.now().stages.values()
        ]
        forms = [name for name, form in FORMS.items() if not form.pictured]
        workers = _workers(desk, access)
        reply = shown("admin.html.j2", dataset=dataset, stages=stages, workers=workers, forms=forms)
        reply.background = BackgroundTask(desk.announce)
        return reply

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


def _workers(desk: ReviewDesk, access: Access) -> list[Worker]:
    """Those with a link, and others whose answers are in."""
    answered = {one.annotator for task in desk.tasks.now().tasks for one in desk.answers_to(task)}
    names = [*access.annotators, *sorted(answered - {*access.annotators})]
    return [Worker(name, desk.counts(name), desk.pace(name), access.has_link(name)) for name in names]
