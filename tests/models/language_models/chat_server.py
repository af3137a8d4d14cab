"""A server of chat completions on loopback that counts what it is asked, and can be faulty."""

import base64
import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


class Reply:
    """What is sent.

    cut: bytes of the content before the connection ends; None: all. answers: whether it is an answer.
    """

    answers = False

    def __init__(
        self, content: bytes, status: int = 200, headers: dict[str, str] | None = None, cut: int | None = None
    ):
        self.content, self.status, self.headers, self.cut = content, status, headers or {}, cut


def completion(text: str | None, finish: str = "stop", tokens: tuple[int, int] = (10, 5)) -> Reply:
    """A chat completion. tokens: read and written."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    reply = Reply(json.dumps({**body, "choices": choices}).encode())
    reply.answers = True
    return reply


def failure(status: int, said: str, **headers: str) -> Reply:
    """An error as OpenAI's servers tell it."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps({"error": {"message": said, "type": "error"}}).encode(), status, sent)


def form(kind: str, content: bytes) -> Body:
    """The fields of a form by name, files as base64."""
    parts = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + content).get_payload()
    found: Body = {}
    for part in parts:  # type: ignore[union-attr]
        payload = part.get_payload(decode=True)  # type: ignore[union-attr]
        name = part.get_param("name", header="content-disposition")  # type: ignore[union-attr]
        found[str(name)] = base64.b64encode(payload).decode() if part.get_filename() else payload.decode()  # type: ignore
    return found


def asked(body: Body) -> str:
    """The caption that a request is about."""
    return str(json.loads(body["messages"][-1]["content"].splitlines()[-1])["caption"])


class ChatServer:
    """The server at work. reply: gives the answer to a request; may block.

    bodies, headers, keys: of all requests, in order; keys are the headers `Authorization`. answered: how often each
    request, as text, got a whole answer. most: requests at a time.
    """

    def __init__(self, reply: Callable[[Body, int], Reply]) -> None:
        self.reply = reply
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.keys: list[str] = []
        self.answered: Counter[str] = Counter()
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.url = ""


@contextlib.contextmanager
def serving(reply: Callable[[Body, int], Reply]) -> Iterator[ChatServer]:
    """A server on a free port of loopback."""
    state = ChatServer(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            kind = self.headers["content-type"]
            body = form(kind, content) if kind.startswith("multipart") else json.loads(content)
            body |= {"path": self.path} if "messages" not in body else {}
            with state.lock:
                number = len(state.bodies)
                state.bodies.append(body)
                state.headers.append(dict(self.headers))
                state.keys.append(self.headers.get("authorization", ""))
                state.now += 1
                state.most = max(state.most, state.now)
            try:
                sent = state.reply(body, number)
            finally:
                with state.lock:
                    state.now -= 1
            with contextlib.suppress(OSError):  # the client may be gone
                self.send_response(sent.status)
                for name, value in {"content-type": "application/json", **sent.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(sent.content)))
                self.end_headers()
                self.wfile.write(sent.content[: sent.cut])
                self.wfile.flush()
                if sent.cut is not None:
                    self.close_connection = True
                elif sent.answers:
                    with state.lock:
                        state.answered[json.dumps(body, sort_keys=True)] += 1

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *arguments: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
