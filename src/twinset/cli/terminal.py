"""What is printed: nothing in it steers a terminal, whoever wrote the names, texts and errors that it quotes."""

import io
import json
import logging
import re
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

#: Control characters but tabs and ends of lines, and what turns the direction of text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: object) -> str:
    """It as text, with a replacement character for each that would steer a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", str(text))


def say(*words: object, **settings: Any) -> None:
    """As `print`, of what is `plain`."""
    print(*map(plain, words), **settings)


class PlainLines(logging.Formatter):
    """Log lines, likewise."""

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter.format`."""
        return plain(super().format(record))


def in_json(**record: Any) -> str:
    """A line of a log: an object with the ``time``."""
    return json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **record})


class JsonLines(logging.Formatter):
    """Log records as JSON: of a shard that ended its own (`stages.run_here`), else ``level``, ``message``."""

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter.format`."""
        shard = getattr(record, "shard", None)
        return in_json(**(shard or {"level": record.levelname.lower(), "message": super().format(record)}))


class JsonStream(io.TextIOBase):
    """A stream on which each line that is written becomes the ``message`` of a JSON object."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._begun = stream, threading.local()  # `print` writes the end of a line by itself

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`."""
        *lines, self._begun.line = (getattr(self._begun, "line", "") + text).split("\n")
        for line in filter(str.strip, lines):
            self._stream.write(in_json(message=line) + "\n")
        return len(text)

    def flush(self) -> None:
        """As `io.TextIOBase.flush`."""
        self._stream.flush()

    def fileno(self) -> int:
        """As `io.TextIOBase.fileno`."""
        return self._stream.fileno()
