"""The folder of a run: bound to one identity, all that decides the weights, and with one writer of its history."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from PIL import __version__, features

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import write_text
from twinset.training.runs.settings import EXECUTION, RunSettings

#: Version of the trainer. Raise it with any change after which the same settings and data give other weights.
VERSION = 3
SETTINGS, HISTORY, RESULT = "settings.json", "history.jsonl", "result.json"
#: Settings that name places: what lies there is in the identity instead.
_PLACES = frozenset({"data", "validation", "model", "weights"})
LONGEST = 60  # characters of a value in a message
Row = dict[str, Any]


def run_identity(settings: RunSettings, digests: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the weights of a run, on machines of one runtime class. digests: of model and data, by name."""
    chosen = settings.model_dump(mode="json", exclude=set(EXECUTION | _PLACES))
    # On these decoded and resized pixels depend.
    codecs = [f"{name} {features.version(name)}" for name in ("libjpeg_turbo", "jpg", "zlib", "webp")]
    return {"version": VERSION, **chosen, **digests, "pixels": ", ".join([f"Pillow {__version__}", *codecs])}


def check_folder(out: Path) -> None:
    """Raise `WrongUse` where a run cannot lie in a folder, before anything is written there."""
    if out.exists() and not out.is_dir():
        raise WrongUse(f"{out}: not a folder; name another --out")
    names = {path.name for path in out.iterdir() if not path.name.startswith(".")} if out.exists() else set()
    if names - {HISTORY} and SETTINGS not in names:
        raise WrongUse(f"{out}: holds other files and no {SETTINGS}; name a new folder as --out")


class History:
    """The rows of ``history.jsonl``, one a step; ``step`` of a row is the number of steps taken, its own included."""

    def __init__(self, stream: BinaryIO) -> None:
        self.rows: list[Row] = []
        self._stream = stream

    def resume(self, size: int) -> None:
        """Read the rows up to a size in bytes, and remove those after it."""
        self._stream.truncate(min(size, self._stream.seek(0, os.SEEK_END)))
        self._stream.seek(0)
        self.rows = [json.loads(line) for line in self._stream]

    def add(self, row: Row) -> None:
        """Append a row."""
        self.rows.append(row)
        try:
            self._stream.write(json.dumps(row).encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            error.add_note(f"{HISTORY}: free some room and run the same command again, which resumes")
            with contextlib.suppress(OSError):
                self._stream.close()  # which writes again, and fails again
            raise

    def sync(self) -> int:
        """Fsync the rows, before a checkpoint is written that relies on them; returns their size in bytes."""
        os.fsync(self._stream.fileno())
        return self._stream.tell()


@contextlib.contextmanager
def claimed(out: Path, settings: RunSettings, identity: Mapping[str, Any], runtime: str) -> Iterator[History]:
    """The history of a run in a folder that is bound to it, locked. Raises `WrongUse`: the folder holds something else,
    another run, with what differs, or one of another type of machine; or another process trains into it.
    """
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / HISTORY).open("a+b") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # workers do not inherit it
        except (BlockingIOError, PermissionError) as error:
            raise WrongUse(f"{out}: another process trains into it; wait for it, or name another --out") from error
        record = {"settings": settings.model_dump(mode="json"), "identity": dict(identity), "runtime": runtime}
        if not (out / SETTINGS).exists():
            write_text(out / SETTINGS, json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        _check_same(out, identity, runtime, settings.allow_mixed_runtimes)
        yield History(stream)


def _check_same(out: Path, identity: Mapping[str, Any], runtime: str, allow_mixed_runtimes: bool) -> None:
    try:
        record = json.loads((out / SETTINGS).read_bytes())
        before, begun = dict(record["identity"]), record["runtime"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise WrongUse(f"{out / SETTINGS}: damaged; name a new folder as --out") from error
    changes = [
        f"{name} is {json.dumps(before.get(name))[:LONGEST]} there and {json.dumps(identity.get(name))[:LONGEST]} here"
        for name in sorted({*before, *identity})
        if before.get(name) != identity.get(name)
    ]
    if changes:
        raise WrongUse(
            f"{out}: holds a run of other settings or data: {'; '.join(changes)}. Repeat the former ones to resume it "
            f"({SETTINGS} has them), or name another --out"
        )
    if begun != runtime and not allow_mixed_runtimes and not (out / RESULT).exists():
        raise WrongUse(
            f"{out}: begun on another type of machine, or with another number of threads, processes or parts of a "
            f"batch (runtime class {begun}, here {runtime}), where networks round differently; resume it there or with "
            f"the former --threads, or accept it with --allow-mixed-runtimes"
        )
