"""The page over HTTP, and what every request passes: who asks, and that it comes from the page of this person."""

import logging
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.staticfiles import StaticFiles

from twinset.cards.rendering import render
from twinset.contracts.errors import TwinsetError, in_words
from twinset.review.access import HOMES, PARTICIPANT_KEY, Access, Person, Refused, Role
from twinset.review.desk import ReviewDesk
from twinset.review.exchange import SUFFIXES, write_answers
from twinset.review.neutral_images import MEDIA_TYPE

STATIC, TEMPLATES = Path(__file__).parent / "static", Path(__file__).parent / "templates"
MOST_AHEAD = 100
CSRF_HEADER = "x-csrf-token"
#: Nothing from another host, no script or style within a page, in nobody's frame, and links in nobody's log.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}  # an id is bound to content (a photo's: to its name)
logger = logging.getLogger("twinset")

# A redirect would do, but a browser that follows a link from another site sends no strict cookie with what a redirect
# leads to. The page itself may go on.
_ENTERED = (
    '<!doctype html><html lang="en"><title>twinset review</title><link rel="icon" href="/static/icon.svg">'
    '<meta http-equiv="refresh" content="0; url={}">'
)


class AnswerBody(BaseModel):
    """An answer as the page sends it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(max_length=64)
    option: str = Field(max_length=256)  # of fifty options in order
    reason: str = Field(default="", max_length=64)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)


def make_app(desk: ReviewDesk, access: Access, dataset: str) -> FastAPI:
    """The page of one OUT.

    Args:
        desk: the work.
        access: who may do it.
        dataset: what the page calls OUT.
    """
    # The pages of the documentation load scripts of other hosts; a redirect to a path with a slash names the Host that
    # the request says.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    _guard(app, access)
    _explain(app)

    @app.get("/")
    def page(request: Request) -> Response:
        person = _person(request)
        unsent = f"twinset-answer:{access.dataset}:{person.name}:"
        return _page("page.html.j2", csrf=access.csrf(person), unsent=unsent, annotator=person.name, dataset=dataset)

    @app.get("/api/next")
    def next_tasks(request: Request, after: Annotated[int, Query(ge=0, le=MOST_AHEAD)] = 3) -> Response:
        return JSONResponse(desk.next(_person(request).name, 1 + after))

    @app.get("/api/rest")
    def rest(request: Request) -> Response:
        name = _person(request).name
        left = desk.rest(name)
        done, total = left["progress"]["done"], left["progress"]["total"]
        if access.participates(name):
            # Who has answered all that was theirs can say so where they came from; the others' work is not theirs.
            left |= {"held": None, "code": access.study if done == total > 0 else None}
        return JSONResponse(left)

    @app.post("/api/answer")
    def answer(request: Request, body: AnswerBody) -> dict[str, Any]:
        name = _person(request).name
        desk.answer(name, body.id, body.option, body.reason, body.seconds)
        return {"saved": True, "progress": desk.progress(name)}

    @app.post("/api/undo")
    def undo(request: Request) -> dict[str, Any]:
        return desk.undo(_person(request).name)

    @app.get("/image/{name}")
    def image(name: str) -> Response:
        shown = desk.tasks.now().images.get(name)
        if shown is None:
            raise Refused(404, "There is no such image now; reload the page.")
        return Response(desk.tasks.picture(*shown), media_type=MEDIA_TYPE, headers=KEPT)

    _add_admin(app, desk, access, dataset)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def _add_admin(app: FastAPI, desk: ReviewDesk, access: Access, dataset: str) -> None:
    """What the admin sees: progress, pace, agreement, export."""

    @app.get("/admin")
    def overview() -> Response:
        stages, answered = [], Counter[str]()
        for stage in desk.tasks.now().stages.values():
            stages.append({"name": stage.name, "counts": desk.stage_counts(stage), "agreement": desk.agreement(stage)})
            answered.update(answer.annotator for given in desk.answers_to(stage) for answer in given)
        names = dict.fromkeys([*access.annotators, *sorted(answered)])
        workers = [{"name": name, "progress": desk.progress(name), "has_link": access.has_link(name)} for name in names]
        return _page("admin.html.j2", dataset=dataset, stages=stages, workers=workers, suffixes=SUFFIXES)

    @app.get("/admin/answers{suffix}")
    def export(suffix: str) -> Response:
        if suffix not in SUFFIXES:
            raise Refused(404, "There is no such file here.")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"answers{suffix}"
            write_answers(path, desk)
            content = path.read_bytes()
        headers = {"Content-Disposition": f'attachment; filename="answers{suffix}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)


def _guard(app: FastAPI, access: Access) -> None:
    """Let nobody reach anything but style and script without a link. ``request.state.person`` says who asks."""

    @app.middleware("http")
    async def guard(request: Request, forward: RequestResponseEndpoint) -> Response:
        # The path that routes are found by: `request.url` is put together with the Host header, which anybody writes.
        path = str(request.scope["path"])
        role: Role = "admin" if path.split("/")[1:2] == ["admin"] else "annotator"  # `OPTIONS *` has no slash
        token = request.query_params.get("token") if path == HOMES[role] else None
        try:
            if token is not None:
                person, own = access.enter(token, role, request.query_params.get(PARTICIPANT_KEY))
                reply = _entered(access, person, own)
            else:
                if not path.startswith("/static/"):
                    person = access.person(request.cookies.get(access.cookie(role)), role)
                    # Tasks, too: in a browser that somebody else has entered since, this page would show theirs.
                    if request.method != "GET" or path.startswith("/api/"):
                        access.check_csrf(person, request.headers.get(CSRF_HEADER, ""))
                    request.state.person = person
                reply = await forward(request)
        except Refused as error:
            reply = _refusal(request, error)
        for name, value in HEADERS.items():
            reply.headers.setdefault(name, value)
        return reply


def _explain(app: FastAPI) -> None:
    """Replies to what goes wrong within the app, in the same form."""

    app.exception_handler(Refused)(_refusal)

    @app.exception_handler(TwinsetError)
    @app.exception_handler(OSError)
    def failed(request: Request, error: Exception) -> Response:
        # What went wrong names files of this machine: that is for who runs the page, not for who opens it.
        logger.error("%s %s: %s", request.method, request.scope["path"], in_words(error))
        return _refusal(request, Refused(500, "Something failed on the server; tell who sent you the link"))

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> Response:
        return _refusal(request, Refused(error.status_code, str(error.detail)))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return _refusal(request, Refused(422, f"{where or 'request'}: {first['msg']}"))


def _entered(access: Access, person: Person, token: str) -> Response:
    """The reply to a link: a cookie, and the way to the page."""
    reply = HTMLResponse(_ENTERED.format(HOMES[person.role]))
    reply.set_cookie(
        access.cookie(person.role),
        token,
        max_age=access.seconds,
        httponly=True,
        samesite="strict",
        secure=access.behind_https,
    )
    return reply


def _person(request: Request) -> Person:
    """Who asks, by the guard."""
    person: Person = request.state.person
    return person


def _page(template: str, **values: Any) -> HTMLResponse:
    """A page from a template. values: what it shows; ``status`` is that of HTTP, too."""
    return HTMLResponse(render(template, TEMPLATES, **values), values.get("status", 200))


def _refusal(request: Request, error: Refused) -> Response:
    """The reply to a request that is refused: JSON for the script, a page for people."""
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"detail": error.words}, error.status)
    return _page("refused.html.j2", status=error.status, words=error.words)
