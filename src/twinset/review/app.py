"""The page over HTTP, and what every request passes: bounds, who asks, and that a change comes from the page itself."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import BackgroundTasks, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinset.contracts.errors import TwinsetError, in_words
from twinset.review.access import (
    CHANGES,
    CSRF_HEADER,
    HEADERS,
    HOMES,
    LARGEST_REQUEST,
    PARTICIPANT_KEY,
    REQUESTS,
    STRANGERS,
    Access,
    Person,
    Refused,
    Role,
    address_of,
)
from twinset.review.admin import add_admin
from twinset.review.desk import ReviewDesk
from twinset.review.replies import person_of, picture, refusal, shown

EXPORTED = "/exported/"  # images that files of answers name: other tools show them, each by a token of its own
OPEN = ("/static/", "/favicon.ico")  # the same for everybody, and in every checkout of twinset
STATIC = Path(__file__).parent / "static"
MOST_AHEAD = 100
logger = logging.getLogger("twinset")

_FAILED = "Something failed on the server; tell who sent you the link"
_FORM = "application/x-www-form-urlencoded"
# A redirect would do, but a browser that follows a link from another site sends no strict cookie with what a redirect
# leads to. The page itself may go on.
_ENTERED = '<!doctype html><html lang="en"><title>twinset review</title><meta http-equiv="refresh" content="0; url={}">'


class Guard:
    """Middleware around the whole app: nothing is reached without a link but style and script.

    Args:
        app: what is guarded; it finds who asks as ``request.state.person``.
        access: who may.
        refused: the reply to a request that is refused.
    """

    def __init__(self, app: ASGIApp, access: Access, refused: Callable[[Request, Refused], Response]) -> None:
        self._app, self._access, self._refused = app, access, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if str(scope["path"]).startswith(EXPORTED):
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                headers.setdefault("Cache-Control", "no-cache" if str(scope["path"]).startswith(OPEN) else "no-store")
            await send(message)

        try:
            body = await self._checked(request)
            if isinstance(body, Response):
                await body(scope, receive, secured)
                return
        except Refused as error:
            await self._refused(request, error)(scope, receive, secured)
            return
        except TwinsetError as error:  # the file of links
            logger.error("%s", error)
            await self._refused(request, Refused(500, _FAILED))(scope, receive, secured)
            return
        except ClientDisconnect:  # in the middle of a body: nobody is there to be told
            return
        await self._app(scope, _replay(body, receive), secured)

    async def _checked(self, request: Request) -> bytes | Response:
        """The body of a request that may pass, or the reply to somebody who comes by a link; raises `Refused`."""
        # The path that routes are found by: `request.url` is put together with the Host header, which anybody writes.
        path, access, reads = str(request.scope["path"]), self._access, request.method in ("GET", "HEAD")
        role: Role = "admin" if path == "/admin" or path.startswith("/admin/") else "annotator"
        token = request.query_params.get("token") if path == HOMES[role] and reads else None
        try:
            if path.startswith(EXPORTED) and reads:
                request.state.image = access.image(path.removeprefix(EXPORTED))
                people = []
            elif path.startswith(OPEN) and reads:
                people = self._anybody(request)
            elif token is None:
                people = access.people(request.cookies, role)
            else:
                person, token = access.enter(token, role, request.query_params.get(PARTICIPANT_KEY))
                people = [person]
        except Refused:
            # Only those without a valid link share a bound by address: no stranger uses up what annotators may ask.
            access.admit(address_of(request.client), STRANGERS)
            if path.startswith(OPEN) and reads:
                return await _read(request)
            raise
        if not people:
            access.admit(f"exported {address_of(request.client)}", REQUESTS)
            return await _read(request)
        access.admit(f"{role} {people[0].name}", REQUESTS)
        if token is not None:
            return _entered(access, people[0], token)
        body, given = await _read(request), request.headers.get(CSRF_HEADER)
        if given is None and request.headers.get("content-type", "").startswith(_FORM):
            given = parse_qs(body.decode("utf-8", "replace")).get("csrf", [None])[0]
        # Of two people in one browser, the page says whose it is; where no page does, it is asked.
        if not reads or (given is not None and len(people) > 1):
            person = access.sender(people, given)
        elif len(people) > 1 and path == HOMES[role]:
            return shown("choose.html.j2", people=[(one.name, access.csrf(one)) for one in people])
        elif len(people) > 1 and path.startswith("/api/"):
            raise Refused(403, "This browser was opened with links of several people; reload the page.")
        else:
            person = people[0]
        if not reads:
            access.admit(f"{person.role} {person.name}", CHANGES)
        request.state.person, request.state.people = person, people
        return body

    def _anybody(self, request: Request) -> list[Person]:
        try:
            return self._access.people(request.cookies, "annotator")
        except Refused:
            return self._access.people(request.cookies, "admin")


def _entered(access: Access, person: Person, token: str) -> Response:
    reply = HTMLResponse(_ENTERED.format(HOMES[person.role]))
    reply.set_cookie(
        access.cookie(person),
        token,
        max_age=access.seconds,
        httponly=True,
        samesite="strict",
        secure=access.behind_https,
    )
    return reply


async def _read(request: Request) -> bytes:
    """The body, of which no more is held than may be."""
    body = b""
    too_large = Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {LARGEST_REQUEST:,} bytes.")
    declared = request.headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()) or int(declared) > LARGEST_REQUEST:
        raise too_large
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_REQUEST:
            raise too_large
    return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read, once more."""
    left: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


class Given(BaseModel):
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
    app.add_middleware(Guard, access=access, refused=refusal)
    _explain(app)

    @app.get("/")
    def page(request: Request) -> Response:
        person = person_of(request)
        return shown("page.html.j2", csrf=access.csrf(person), annotator=person.name, dataset=dataset)

    @app.post("/choose")
    def choose(request: Request) -> Response:
        reply, chosen = RedirectResponse("/", 303), person_of(request)
        for person in request.state.people:
            if person != chosen:
                reply.delete_cookie(access.cookie(person))
        return reply

    @app.get("/help")
    def guide(request: Request) -> Response:
        return shown("help.html.j2", guides=desk.guides())

    @app.get("/api/next")
    def next_tasks(request: Request, after: Annotated[int, Query(ge=0, le=MOST_AHEAD)] = 3) -> Response:
        return JSONResponse(desk.next(person_of(request).name, 1 + after))

    @app.get("/api/rest")
    def rest(request: Request) -> Response:
        name = person_of(request).name
        found = desk.rest(name)
        done, total = found["progress"]["done"], found["progress"]["total"]
        if access.participates(name):
            # Who has answered all that was theirs can say so where they came from; who the others are is not theirs.
            found |= {"held": [], "code": access.study if done == total > 0 else None}
        return JSONResponse(found)

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

    @app.get(EXPORTED + "{token}")
    def exported(request: Request, token: str) -> Response:
        return picture(desk, request.state.image)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    add_admin(app, desk, access, dataset)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def _explain(app: FastAPI) -> None:
    """Replies to what goes wrong within the app, in the same form."""

    app.exception_handler(Refused)(refusal)

    @app.exception_handler(TwinsetError)
    @app.exception_handler(OSError)
    def failed(request: Request, error: Exception) -> Response:
        # What went wrong names files of this machine: that is for who runs the page, not for who opens it.
        logger.error("%s %s: %s", request.method, request.scope["path"], in_words(error))
        return refusal(request, Refused(500, _FAILED))

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> Response:
        return refusal(request, Refused(error.status_code, str(error.detail)))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return refusal(request, Refused(422, f"{where or 'request'}: {first['msg']}"))
