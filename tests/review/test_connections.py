"""Connections to the page that are not of its annotators."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.asked import SECRET, all_kinds, painted_app
from twinset.review.access import Access, Person, address_of
from twinset.review.opening import server_of

ANNA = Person("anna", "annotator")
ACCESS = Access(SECRET, ["anna"])
COOKIE = f"{ACCESS.cookie(ANNA)}={ACCESS.token(ANNA)}"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The page as `serve` serves it, from a thread."""
    app, _ = painted_app(tmp_path, all_kinds(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as opened:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        yield opened.getsockname()[1]
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def opened(port: int, count: int, sends: bytes = b"", source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Connections that send this and no more."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
            made.append(stack.enter_context(one))
            with contextlib.suppress(OSError):
                one.sendall(sends)
        yield made


def next_task(port: int) -> int:
    """The status of what an annotator gets now."""
    asked = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(asked):
        asked.request("GET", "/api/next", headers={"Cookie": COOKIE})
        return asked.getresponse().status


def test_silent_connections_leave_room_for_annotators(port: int) -> None:
    """With 200 silent sockets everybody had status 503."""
    with opened(port, 300):
        assert next_task(port) == 200


def test_a_websocket_is_not_opened(port: int) -> None:
    """uvicorn would hand the connection to another protocol; the page has none."""
    asks = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    asks += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with opened(port, 1, b"GET / HTTP/1.1\r\nHost: x\r\n" + asks + b"\r\n") as [asking]:
        assert asking.recv(65536).startswith(b"HTTP/1.1 401")


def test_one_host_has_one_address() -> None:
    """A host may use all 2**64 addresses of its IPv6 network."""
    assert address_of(("2001:db8::1", 1)) == address_of(("2001:db8::ffff:2", 2, 0, 0)) != address_of(("2001:db9::1", 1))
    assert address_of(("192.0.2.1", 1)) == "192.0.2.1"
    assert address_of(None) == ""


def test_a_flood_of_wrong_requests_fills_no_log(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """Each line of nonsense was a line of the log."""
    for _ in range(20):
        with opened(port, 1, b"nonsense\r\n\r\n") as [wrong]:
            wrong.settimeout(10)
            while wrong.recv(65536):
                pass
    assert not caplog.records
