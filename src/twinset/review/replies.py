"""What both kinds of pages reply with: pages from templates, images, refusals."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from twinset.cards.rendering import render
from twinset.review.access import Person, Refused
from twinset.review.desk import ReviewDesk
from twinset.review.neutral_images import MEDIA_TYPE

TEMPLATES = Path(__file__).parent / "templates"
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}  # the id of an image is bound to its content


def person_of(request: Request) -> Person:
    """Who asks, as the guard found."""
    person: Person = request.state.person
    return person


def picture(desk: ReviewDesk, name: str) -> Response:
    """An image by its name on the page; raises `Refused` (404) when there is none."""
    found = desk.tasks.now().images.get(name)
    if found is None:
        raise Refused(404, "There is no such image now; reload the page.")
    return Response(desk.tasks.picture(*found), media_type=MEDIA_TYPE, headers=KEPT)


def shown(template: str, **values: Any) -> HTMLResponse:
    """A page from a template. values: what it shows; ``status`` is that of HTTP, too."""
    return HTMLResponse(render(template, TEMPLATES, **values), values.get("status", 200))


def refusal(request: Request, error: Refused) -> Response:
    """What a request that is refused gets: JSON for the script, a page for people."""
    if request.scope["path"].startswith("/api/"):
        reply: Response = JSONResponse({"detail": error.words}, error.status)
    else:
        reply = shown("refused.html.j2", status=error.status, words=error.words)
    if error.wait:
        reply.headers["Retry-After"] = str(int(error.wait) + 1)
    return reply
