"""Child processes for what must not share one: two threads in dlib corrupt its heap, Blender holds one global scene.

A child is an interpreter of its own that reads one request a line on stdin and answers one a line. It ends when its
parent does, however that ends; when it crashes, only the shard it was making fails. Its temporary files (unpacked
assets, a render: up to gigabytes) lie in a folder of its own that goes with it, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from functools import partial
from typing import Any

from flows.orphans import SCRATCH
from manifests.errors import BuildFailed, TwinsetError, WrongUse
from stages.end_with_parent import end_with_parent

SWEEPS = 20  # of a folder that the thread at work may still be writing into


class ShardCrashed(BuildFailed):
    """The process that made a shard died."""


class _Child:
    def __init__(self) -> None:
        self._scratch = tempfile.mkdtemp(prefix="twinset-", dir=os.environ.get(SCRATCH))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stages.child_processes", str(os.getpid()), self._scratch],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": self._scratch},
        )

    def ask(self, out: str, subset: str, shard: int) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([out, subset, shard]) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer.endswith("\n"):
            code = self._process.wait()
            raise ShardCrashed(
                f"its process died ({_died(code)}); run the same command again, and if it dies again, build this "
                f"subset alone (--only {subset} --workers 1 --verbose) to see its last words"
            )
        result: dict[str, Any] = json.loads(answer)
        return result

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the child, whatever it is doing: what it had not published is lost."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                # A request that a dead child never read is still in the buffer.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


_idle: queue.LifoQueue[_Child] = queue.LifoQueue()


@contextlib.contextmanager
def _child() -> Iterator[_Child]:
    child = _idle_child() or _Child()
    try:
        yield child
    except BaseException:
        child.close()
        raise
    _idle.put(child)


def _idle_child() -> _Child | None:
    """A child that waits for work and has not died (out of memory, say) while it waited."""
    while True:
        try:
            child = _idle.get_nowait()
        except queue.Empty:
            return None
        if child.is_alive():
            return child
        child.close()


def make_one_isolated(out: str, subset: str, shard: int) -> dict[str, Any]:
    """`stages.prepare.make_one` in a child process, kept for the next shard; raises what it raised there."""
    with _child() as child:
        answer = child.ask(out, subset, shard)
    if "receipt" in answer:
        receipt: dict[str, Any] = answer["receipt"]
        return receipt
    if answer["kind"] == "os":
        error = OSError(*answer["arguments"])
        for note in answer["notes"]:
            error.add_note(note)
        raise error
    if answer["kind"] == "wrong-use":
        raise WrongUse(answer["message"])
    raise BuildFailed(answer["message"])


def close_children() -> None:
    """End the children that are idle; used at the end of a build."""
    while True:
        try:
            _idle.get_nowait().close()
        except queue.Empty:
            return


def _died(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _remove(scratch: str) -> None:
    for _ in range(SWEEPS):
        shutil.rmtree(scratch, ignore_errors=True)
        if not os.path.exists(scratch):
            break


def _serve(parent: int, scratch: str) -> None:
    end_with_parent(parent, partial(_remove, scratch))
    # Blender and dlib print what they like on stdout: answers get a channel of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from stages.prepare import make_one

    for line in sys.stdin:
        out, subset, shard = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"receipt": make_one(out, subset, shard)}
        except OSError as error:
            arguments = [error.errno, error.strerror, _name(error.filename)] if error.errno else [str(error)]
            answer = {"kind": "os", "arguments": arguments, "notes": getattr(error, "__notes__", [])}
        except WrongUse as error:
            answer = {"kind": "wrong-use", "message": str(error)}
        except TwinsetError as error:
            answer = {"kind": "failed", "message": str(error)}
        except Exception as error:
            traceback.print_exc()
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            answer = {"kind": "failed", "message": message}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    _remove(scratch)  # the parent has ended: nobody else does
    os._exit(1)


def _name(filename: str | bytes | int | None) -> str | None:
    return None if filename is None else str(filename)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
