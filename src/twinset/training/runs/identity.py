"""The folder of a run. Its identity is all that decides its weights: another run is refused. Its history is logged."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from PIL import __version__, features
from pydantic import BaseModel

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import write_text
from twinset.training.runs.settings import EXECUTION, RunSettings

#: Version of the loop. Raise it with any change after which the same settings and data give other weights.
VERSION = 1
SETTINGS = "settings.json"
#: What a run has in its folder, for messages where something else is there.
FOLDERS, FILES = ("checkpoints", "tensorboard"), (SETTINGS, "history.jsonl", "result.json", "data.json", "README.md")
#: Settings that name places: what lies there is in the identity instead.
_PLACES = frozenset({"data", "validation", "model", "weights", "neighbours", "neighbours_by"})
LONGEST = 60  # characters of a value in a message


def run_identity(settings: RunSettings, start: Mapping[str, Any], digests: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the weights of a run, on machines of one runtime class.

    Args:
        start: of the model before its first step (`training.clip.data.Start.identity`).
        digests: of the data.
    """
    chosen = settings.model_dump(mode="json", exclude=set(EXECUTION | _PLACES))
    found = {"version": VERSION, "settings": chosen, "model": dict(start), "data": dict(digests)}
    # On these decoded and resized pixels depend.
    codecs = [f"{name} {features.version(name)}" for name in ("libjpeg_turbo", "jpg", "zlib", "webp")]
    return found | {"pixels": ", ".join([f"Pillow {__version__}", *codecs])}


def check_folder(out: Path) -> None:
    """Raise `WrongUse` where a run cannot lie in a folder, before anything is written there."""
    for place in (out, *out.parents):
        if place.is_dir():
            break
        if os.path.lexists(place):
            raise WrongUse(f"{place}: not a folder; name another --out")
    for name in FOLDERS:
        if os.path.lexists(out / name) and not (out / name).is_dir():
            raise WrongUse(f"{out / name}: not a folder, which the run needs there; remove it, or name another --out")
    for name in FILES:
        if (out / name).is_dir():
            raise WrongUse(f"{out / name}: a folder, where the run has a file; remove it, or name another --out")
    if not out.is_dir() or (out / SETTINGS).exists():
        return
    if any(entry.name != "history.jsonl" and not entry.name.startswith(".") for entry in out.iterdir()):
        raise WrongUse(f"{out}: holds other files and no {SETTINGS}; name a new folder as --out")


def claim(out: Path, settings: RunSettings, identity: Mapping[str, Any], runtime: str) -> None:
    """Bind a folder to a run, or check that it is bound to this one. Raises `WrongUse`: another run is there, with what
    differs; or it was begun on another type of machine.
    """
    begun = bind(out, settings, identity, runtime)
    if begun != runtime and not settings.allow_mixed_runtimes and not (out / "result.json").exists():
        raise WrongUse(
            f"{out}: begun on another type of machine, or with another number of threads, processes or parts of a "
            f"batch (runtime class {begun}, here {runtime}), where networks round differently; resume it there or with "
            f"the former --threads, or accept it with --allow-mixed-runtimes"
        )


def bind(out: Path, settings: BaseModel, identity: Mapping[str, Any], runtime: str) -> str:
    """As `claim`, but on whatever type of machine; returns the runtime class that it was begun on."""
    path = out / SETTINGS
    if not path.exists():
        check_folder(out)
        said = {"settings": settings.model_dump(mode="json"), "identity": dict(identity), "runtime": runtime}
        write_text(path, json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        return runtime
    try:
        held = json.loads(path.read_bytes())
        before, begun = held["identity"], str(held["runtime"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise WrongUse(f"{path}: damaged; name a new folder as --out") from error
    if before != identity:
        changes = "; ".join(_differences(before, identity))
        raise WrongUse(
            f"{out}: holds a run of other settings or data: {changes}. Repeat the former ones to resume it ({path} has "
            "them), or name another --out"
        )
    return begun


def _differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Where two JSON values differ, as ``place: before there, now here``."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                yield from _differences(before.get(name), now.get(name), f"{at}.{name}" if at else name)
    else:
        there, here = (json.dumps(value, ensure_ascii=False)[:LONGEST] for value in (before, now))
        yield f"{at.removeprefix('settings.')} is {there} there and {here} here"


Row = dict[str, Any]
#: Seconds: workers of a process that was just killed hold its lock until they notice.
PATIENCE = 5.0


class History:
    """The rows of ``history.jsonl``, one a step; ``step`` of a row is the number of steps taken, its own included.

    As a context manager it opens and locks the file: a second process that trains into the same folder is refused. Of
    several processes that share a run, only the first one writes.
    """

    def __init__(self, out: Path, writes: bool = True) -> None:
        self._path, self._writes = out / "history.jsonl", writes
        self.rows: list[Row] = []
        self._stream: BinaryIO | None = None

    def __enter__(self) -> History:
        if not self._writes:
            return self
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._path.open("a+b")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except OSError as error:
                if time.monotonic() > end:
                    self._stream.close()
                    raise WrongUse(
                        f"{self._path.parent}: another process trains into it; wait for it, or name another --out"
                    ) from error
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def cut(self, step: int) -> None:
        """Read the rows up to a step and remove those after it; a row that a kill cut short is removed too."""
        self.rows, end = [], 0
        held = self._path.read_bytes() if self._path.exists() else b""  # a process that does not write reads it too
        for line in held.splitlines(keepends=True):
            try:
                row = json.loads(line)
                if not line.endswith(b"\n") or row["step"] > step:
                    break
            except (ValueError, LookupError, TypeError, RecursionError):
                break
            self.rows.append(row)
            end += len(line)
        if self._stream is not None:
            self._stream.truncate(end)

    def add(self, row: Row) -> None:
        """Append a row."""
        self.rows.append(row)
        if self._stream is not None:
            try:
                self._stream.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                self._stream.flush()
            except OSError as error:
                error.add_note(f"{self._path}: free some room and run the same command again, which resumes")
                raise

    def sync(self) -> None:
        """Fsync the rows, before a checkpoint is written that relies on them."""
        if self._stream is not None:
            os.fsync(self._stream.fileno())
