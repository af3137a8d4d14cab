"""What is printed: nothing in it steers a terminal, whoever wrote the names, texts and errors that it quotes."""

import logging
import re
from typing import Any

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
