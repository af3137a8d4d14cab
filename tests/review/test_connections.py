"""Attacks on the page's connections: silence, drips, readers that do not read, and crowds."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.asked import SECRET, all_kinds, painted_app
from tests.waiting import wait_until
from twinset.review import connections
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


def is_closed(one: socket.socket, within: float | None = None) -> bool:
    """Whether the server closes a connection, within some seconds or ever."""
    one.settimeout(within)
    try:
        while one.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def next_task(port: int) -> int:
    """The status of what an annotator gets now."""
    asked = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(asked):
        asked.request("GET", "/api/next", headers={"Cookie": COOKIE})
        return asked.getresponse().status


POST = b"POST /api/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n"


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHo", POST + b"Cookie: " + COOKIE.encode() + b"\r\n\r\n{", POST + b"\r\n{"]
)
def test_a_connection_that_never_sends_its_request_is_closed(
    port: int, sent: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Slow loris: silence, half a header, half a body, with and without a login; without a word in the log."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5, raising=False)
    with opened(port, 1, sent) as [silent]:
        assert is_closed(silent)
    assert next_task(port) == 200
    assert not caplog.records


def test_a_drip_of_bytes_does_not_extend_the_time_of_a_request(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of a header every tenth of a second, on a connection that was used before."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.7, raising=False)
    with opened(port, 1, b"GET /favicon.ico HTTP/1.1\r\nHost: x\r\n\r\n") as [slow]:
        assert slow.recv(65536).startswith(b"HTTP/1.1 204")
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(OSError):
            while True:  # until the server closes the connection
                slow.sendall(b"x")
                time.sleep(0.1)


def test_silent_connections_leave_room_for_annotators(port: int) -> None:
    """With 200 silent sockets everybody had status 503."""
    with opened(port, 300):
        assert next_task(port) == 200


def test_silent_connections_of_one_address_leave_room_for_its_annotators(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More silent sockets than there may be, behind the proxy that annotators come through."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 60, raising=False)
    with opened(port, 300) as silent:
        assert next_task(port) == 200
        assert all(is_closed(one) for one in silent[:200]), "those that wait longest go"
        assert next_task(port) == 200


def test_a_crowd_of_addresses_takes_no_room_from_others(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound, the address with the most connections loses one of its own."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 60, raising=False)
    with opened(port, 5, source="127.0.0.9") as few, opened(port, 50, source="127.0.0.2") as many:
        assert next_task(port) == 200
        with opened(port, 50, source="127.0.0.3"):
            assert next_task(port) == 200
            assert not any(is_closed(one, 0.01) for one in few)
            wait_until(lambda: any(is_closed(one, 0.01) for one in many))


def test_clients_that_do_not_read_their_replies_hold_no_place(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben asks on many connections for more than their buffers hold, and reads none of it."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20, raising=False)
    ben, access = Person("ben", "annotator"), Access(SECRET, ["ben"])
    asks = f"GET /static/review.js HTTP/1.1\r\nHost: x\r\nCookie: {access.cookie(ben)}={access.token(ben)}\r\n\r\n"
    with opened(port, 30, asks.encode() * 10):
        while True:  # while all 20 are being served, another one is refused, and the page asks again
            with contextlib.suppress(ConnectionError):
                assert next_task(port) == 200
                break


def test_a_websocket_is_not_opened(port: int) -> None:
    """uvicorn would hand the connection to another protocol, which has no deadlines."""
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
            assert is_closed(wrong, 10)
    assert not caplog.records
