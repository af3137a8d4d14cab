"""The page over HTTP."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import BackgroundTasks, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from twinset.generators.decisions.questions import QUESTIONS, question_of
from twinset.manifests.errors import TwinsetError, in_words
from twinset.review.access import Access, Refused
from twinset.review.admin import add_admin
from twinset.review.desk import ReviewDesk
from twinset.review.guard import Guard
from twinset.review.replies import person_of, picture, refusal, shown

logger = logging.getLogger("twinset")

STATIC = Path(__file__).parent / "static"
MOST_AHEAD = 100


class Given(BaseModel):
    """An answer as the page sends it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(max_length=64)
    option: str = Field(max_length=16)
    reason: str = Field(default="", max_length=64)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)


def make_app(desk: ReviewDesk, access: Access, dataset: str) -> FastAPI:
    """The page of one OUT.

    Args:
        desk: the work.
        access: who may do it.
        dataset: what the page calls OUT.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)  # their pages load scripts of other hosts
    app.add_middleware(Guard, access=access, refused=refusal)
    _explain(app)

    @app.get("/")
    def page(request: Request) -> Response:
        person = person_of(request)
        return shown("page.html.j2", csrf=access.csrf(person), annotator=person.name, dataset=dataset)

    @app.get("/help")
    def guide(request: Request) -> Response:
        return shown("help.html.j2", guides=[question_of(name) for name in QUESTIONS.kinds()])

    @app.get("/api/next")
    def next_tasks(request: Request, after: Annotated[int, Query(ge=0, le=MOST_AHEAD)] = 3) -> Response:
        return JSONResponse(desk.next(person_of(request).name, 1 + after))

    @app.get("/api/rest")
    def rest(request: Request) -> Response:
        return JSONResponse(desk.rest(person_of(request).name))

    @app.post("/api/answer")
    def answer(request: Request, given: Given, later: BackgroundTasks) -> dict[str, Any]:
        name = person_of(request).name
        stage = desk.answer(name, given.id, given.option, given.reason, given.seconds)
        later.add_task(desk.announce, [stage])
        return {"saved": True, "progress": desk.progress(name)}

    @app.post("/api/undo")
    def undo(request: Request) -> dict[str, Any]:
        return desk.undo(person_of(request).name)

    @app.get("/image/{name}")
    def image(name: str) -> Response:
        return picture(desk, name)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    add_admin(app, desk, access, dataset)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def _explain(app: FastAPI) -> None:
    """Replies to what goes wrong within the app, in the same form."""

    def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return refusal(request, error)

    def failed(request: Request, error: Exception) -> Response:
        # What went wrong names files of this machine: that is for who runs the page, not for who opens it.
        logger.error("%s %s: %s", request.method, request.scope["path"], in_words(error))
        return refusal(request, Refused(500, "Something failed on the server; tell who sent you the link"))

    def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return refusal(request, Refused(error.status_code, str(error.detail)))

    def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return refusal(request, Refused(422, f"{where or 'request'}: {first['msg']}"))

    handlers: dict[Any, Callable[[Request, Exception], Response]] = {
        Refused: refuse,
        TwinsetError: failed,
        OSError: failed,
        HTTPException: unknown,
        RequestValidationError: malformed,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
