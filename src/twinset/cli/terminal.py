"""What is printed: nothing in it steers a terminal, whoever wrote the names, texts and errors that it quotes."""

import contextlib
import json
import logging
import math
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

#: Control characters but tabs and ends of lines, and what turns the direction of text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MINUTE = 60.0  # seconds between two lines of a row in a log, at least


class Log:
    """Whether lines on stderr are JSON objects, as of ``--log json``."""

    json = False


def plain(text: object) -> str:
    """It as text, with a replacement character for each that would steer a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", str(text))


def say(*words: object, **settings: Any) -> None:
    """As `print`, of what is `plain`."""
    print(*map(plain, words), **settings)


def tell(text: object) -> None:
    """Print lines on stderr, beside the answer of a command."""
    for line in str(text).splitlines():
        print(in_json(message=line) if Log.json else plain(line), file=sys.stderr, flush=True)


def in_json(**record: Any) -> str:
    """A line of a log: an object with the ``time``."""
    return json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **record})


class LogLines(logging.Formatter):
    """Log lines; as JSON, a shard that ended (`stages.build`) has its own fields, others a ``level``."""

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter.format`."""
        message = super().format(record)
        if not Log.json:
            return plain(message)
        return in_json(**(getattr(record, "shard", None) or {"level": record.levelname.lower(), "message": message}))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows by the names of their columns, in plain text, whatever the width of the terminal."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    lines = [names, *([_cell(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    """A value in a table: other people's words, which must not steer the terminal, nor break the line."""
    if isinstance(value, Mapping):
        value = ", ".join(f"{count:,} {name}" for name, count in value.items())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
    text = "?" if value is None else str(value)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """An interval; empty where there is none."""
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"


def print_facts(facts: Mapping[str, Any], of: str = "") -> None:
    """Print names and values, a line each; of what lies deeper with all names."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            print_facts(value, f"{of}{name} ")
        elif value not in (None, [], ""):
            say(f"{of}{name}: {', '.join(map(str, value)) if isinstance(value, list) else _cell(value)}")


class Rows:
    """Progress on stderr, by name: a bar each on a terminal, else a line at most every minute.

    It is a `stages.finish.Progress`, whose bars have all samples of a stage, those of earlier runs too.
    """

    def __init__(self) -> None:
        self.bars: Any = None
        self._lock = threading.Lock()
        self._tasks: dict[str, Any] = {}
        self._told: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._shards: dict[str, list[int]] = {}  # done, total
        self._samples: dict[str, tuple[int, int]] = {}  # made, planned
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TimeRemainingColumn

            columns = ("{task.description}", BarColumn(), "{task.fields[text]}", TimeRemainingColumn())
            self.bars = Progress(*columns, console=Console(stderr=True))

    def show(self, name: str, text: str, done: int = 0, total: int | None = None, now: bool = False) -> None:
        """Show how far something is. now: in a log too, however short ago the last line was."""
        with self._lock:
            if self.bars is None:
                if now or time.monotonic() - self._told.get(name, -math.inf) >= MINUTE:
                    tell(f"{name}: {text}")
                    self._told[name] = time.monotonic()
            elif name in self._tasks:
                self.bars.update(self._tasks[name], text=text, completed=done, total=total)
            else:
                self._tasks[name] = self.bars.add_task(name, text=text, completed=done, total=total)

    def begin(self, stage: str, total: int, done: int) -> None:
        """As `stages.finish.Progress.begin`."""
        self._shards[stage] = [done, total]
        self._began.setdefault(stage, time.monotonic())
        self.show(stage, f"making {total - done:,} of {total:,} shards", now=True)

    def advance(self, stage: str) -> None:
        """As `stages.finish.Progress.advance`."""
        with self._lock:
            self._shards[stage][0] += 1
        self.samples(stage, *self._samples.get(stage, (0, 0)))

    def samples(self, stage: str, made: int, planned: int) -> None:
        """As `stages.finish.Progress.samples`."""
        self._samples[stage] = made, planned
        done, total = self._shards.get(stage, (0, 0))
        samples = f"{made:,} of {planned:,} samples, " if planned else ""
        self.show(stage, f"{samples}{done:,} of {total:,} shards", made, planned or None)

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.finish.Progress.phase`; in a log a stage without a shard to make says nothing."""
        if doing and self.bars is not None:
            self.show(stage, doing)
        elif not doing and stage in self._began:
            words = "done in" if len({*self._shards[stage]}) == 1 else "stopped after"
            self.show(stage, f"{words} {time.monotonic() - self._began.pop(stage):,.0f} s", 1, 1, now=True)

    def trained(self, step: int, steps: int, row: Mapping[str, Any]) -> None:
        """So many steps of a training are done. row: what is logged of the last."""
        self.show("training", f"{step:,} of {steps:,} steps, loss {row['loss']:.3f}", step, steps, step in (1, steps))


@contextlib.contextmanager
def progress() -> Iterator[Rows]:
    """Rows that are shown while the context lasts."""
    rows = Rows()
    with rows.bars or contextlib.nullcontext():
        yield rows
