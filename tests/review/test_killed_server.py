"""kill -9 of the server after each answer: all of them are stored, none twice."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from tests.review.asked import SECRET
from twinset.generators.decisions.answers import read_answers
from twinset.review.access import Access, Person

ANSWERS = 200
ANNA = Person("anna", "annotator")
CHECKOUT = Path(__file__).resolve().parents[2]
#: Starts a server at each line that it reads, in a child process that opens everything again.
STARTER = f"""
import os, sys
from pathlib import Path
import uvicorn
from twinset.review.opening import serve
from tests.review.asked import candidate, painted_app, stage_of
out = Path(sys.argv[1])
tasks = [candidate("s", "fits-caption", n) for n in range({ANSWERS})]
uvicorn.Config(painted_app(out / "unused", [])[0]).load()  # what it imports, each server finds
for line in sys.stdin:
    child = os.fork()
    if not child:
        app, _ = painted_app(out, [stage_of("s", tasks, out)])
        serve(app, "127.0.0.1", int(line), lambda base: print(os.getpid(), base.rpartition(":")[2], flush=True))
    os.waitpid(child, 0)
"""


class Server:
    """A server that is killed and started again at the same port."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin, self._stdout, self.port = stdin, stdout, 0
        self.start()

    def start(self) -> None:
        self._stdin.write(f"{self.port}\n")
        self._stdin.flush()
        self._process, self.port = map(int, self._stdout.readline().split())

    def kill(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        self.start()

    def ask(self, method: str, path: str, body: Any = None) -> http.client.HTTPConnection:
        access = Access(SECRET, ["anna"])
        headers = {
            "Cookie": f"{access.cookie(ANNA)}={access.token(ANNA)}",
            "X-CSRF-Token": access.csrf(ANNA),
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None and starter.stdout is not None
        running = Server(starter.stdin, starter.stdout)
        yield running
        os.kill(running._process, signal.SIGKILL)
        starter.stdin.close()


def told(connection: http.client.HTTPConnection) -> Any:
    reply = connection.getresponse()
    content = json.loads(reply.read())
    connection.close()
    assert reply.status == 200, content
    return content


@pytest.mark.slow
def test_no_answer_is_lost_or_doubled_when_the_server_is_killed_after_each(tmp_path: Path, server: Server) -> None:
    for number in range(ANSWERS):
        [task] = told(server.ask("GET", "/api/next?after=0"))
        assert task["progress"]["done"] == number
        body = {"id": task["id"], "option": "o0", "seconds": 1.0}
        sent = server.ask("POST", "/api/answer", body)
        if number % 2:
            assert told(sent)["progress"]["done"] == number + 1
            server.kill()
            continue
        # Killed before the reply is read: nobody knows whether the answer is stored, and the page sends it again.
        server.kill()
        with suppress(OSError, http.client.HTTPException):
            sent.close()
        assert told(server.ask("POST", "/api/answer", body))["progress"]["done"] == number + 1
    answers = read_answers(tmp_path / "_review" / "answers.sqlite", "s")
    assert len(answers) == ANSWERS
    assert set(Counter(one.task for one in answers).values()) == {1}
    assert told(server.ask("GET", "/api/next")) == []
