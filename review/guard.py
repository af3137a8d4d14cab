"""What every request passes: bounds, who asks, and that a change comes from the page itself; else it is refused."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinset.review.access import CHANGES, CSRF_HEADER, HEADERS, HOMES, LARGEST_REQUEST, REQUESTS, Access, Refused, Role

OPEN = ("/static/", "/favicon.ico")  # the same for everybody, and in every checkout of twinset
COOKIE_SECONDS = 30 * 86_400
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
        await self._app(scope, _replay(body, receive), secured)

    async def _checked(self, request: Request) -> bytes | Response:
        """The body of a request that may pass, or the reply to somebody who comes by a link; raises `Refused`."""
        # The path that routes are found by: `request.url` is put together with the Host header, which anybody writes.
        path, access = str(request.scope["path"]), self._access
        access.admit(request.client.host if request.client else "", REQUESTS)
        body = await _read(request)
        if path.startswith(OPEN) and request.method in ("GET", "HEAD"):
            return body
        role: Role = "admin" if path == "/admin" or path.startswith("/admin/") else "annotator"
        cookie, home = access.cookie(role), HOMES[role]
        if path == home and (token := request.query_params.get("token")) is not None:
            access.person(token, role)
            return _entered(cookie, token, home, access.behind_https)
        person = access.person(request.cookies.get(cookie), role)
        if request.method not in ("GET", "HEAD"):
            given = request.headers.get(CSRF_HEADER)
            if given is None and request.headers.get("content-type", "").startswith(_FORM):
                given = parse_qs(body.decode("utf-8", "replace")).get("csrf", [None])[0]
            access.check_csrf(person, given)
            access.admit(f"{person.role} {person.name}", CHANGES)
        request.state.person = person
        return body


def _entered(cookie: str, token: str, home: str, secure: bool) -> Response:
    reply = HTMLResponse(_ENTERED.format(home))
    reply.set_cookie(cookie, token, max_age=COOKIE_SECONDS, path=home, httponly=True, samesite="strict", secure=secure)
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
