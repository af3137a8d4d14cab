"""An S3 server on this machine, and a proxy before it that lets some requests fail."""

import http.client
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.server import ThreadedMotoServer

LOGIN = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
DROPPED = 0  # the server closes the connection instead of answering
SILENT = -1  # it keeps it open, and never answers
CUT = -2  # it answers, and closes the connection after half of the body
BUSY = 503  # with Retry-After


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of moto's server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


class Flaky(ThreadingHTTPServer):
    """Passes requests on to an S3 server, but not those that ``fails`` chooses by method and path.

    failures: what happens to those, in turn: an HTTP status, or `DROPPED`. requests: method, path and headers of all.
    """

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.fails: Callable[[str, str], bool] = lambda method, path: False
        self.failures: Iterator[int] = itertools.repeat(500)
        self.requests: list[tuple[str, str, Message]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Flaky

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, self.headers))
        if self.server.fails(self.command, self.path):
            answer = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
            if (status := next(self.server.failures)) == DROPPED:
                self.close_connection = True
                return
            if status == SILENT:
                self.close_connection = True
                self.rfile.read(1)  # until the client gives up
                return
            if status == CUT:
                self._answer(body, cut=True)
                return
            self.send_response(status)
            if status == BUSY:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)
            return
        self._answer(body)

    def _answer(self, body: bytes = b"", cut: bool = False) -> None:
        connection = http.client.HTTPConnection(self.server.target.removeprefix("http://"))
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        response = connection.getresponse()
        answer = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2] if cut else answer)
        self.close_connection = self.close_connection or cut
        connection.close()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on

    def log_message(self, format: str, *args: Any) -> None:
        pass
