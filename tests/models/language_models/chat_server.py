"""A server of chat completions on loopback that counts what it is asked, and can be faulty."""

import contextlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Reply:
    """What is sent. cut: bytes of the content before the connection ends; None: all. answers: whether it answers."""

    content: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    answers: bool = False


def completion(
    text: str | None, finish: str = "stop", tokens: tuple[int, int] = (10, 5), likely: dict[str, float] | None = None
) -> Reply:
    """A chat completion. tokens: read and written. likely: alternatives to the first token, with probabilities."""
    choice: Body = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    if likely:
        top = [{"token": token, "logprob": math.log(share)} for token, share in likely.items()]
        choice["logprobs"] = {"content": [{"token": text, "logprob": 0, "top_logprobs": top}]}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "usage": usage, "choices": [choice]}
    return Reply(json.dumps(body).encode(), answers=True)


def failure(status: int, reason: str, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps({"error": {"message": reason, "type": "error"}}).encode(), status, sent)


def asked(body: Body) -> str:
    """The caption that a request is about."""
    return str(json.loads(body["messages"][-1]["content"].splitlines()[-1])["caption"])


class ChatServer:
    """The server at work. reply: gives the answer to a request; may block.

    bodies, headers, keys: of all requests, in order; keys are the headers `Authorization`. answered: how often each
    request, as text, got a whole answer.
    """

    def __init__(self, reply: Callable[[Body, int], Reply]) -> None:
        self.reply, self.url, self.lock = reply, "", threading.Lock()
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.keys: list[str] = []
        self.answered: Counter[str] = Counter()


@contextlib.contextmanager
def serving(reply: Callable[[Body, int], Reply]) -> Iterator[ChatServer]:
    state = ChatServer(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body |= {"path": self.path} if "messages" not in body else {}
            with state.lock:
                number = len(state.bodies)
                state.bodies.append(body)
                state.headers.append(dict(self.headers))
                state.keys.append(self.headers.get("authorization", ""))
            sent = state.reply(body, number)
            with contextlib.suppress(OSError):  # the client may be gone
                self.send_response(sent.status)
                for name, value in {"content-type": "application/json", **sent.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(sent.content)))
                self.end_headers()
                self.wfile.write(sent.content[: sent.cut])
                self.close_connection = self.close_connection or sent.cut is not None
                if sent.cut is None and sent.answers:
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
