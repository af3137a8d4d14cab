"""Errors that are instructions: each message names the file, shard or key at fault and what to do about it."""

from __future__ import annotations

import traceback


class TwinsetError(Exception):
    """Base of every error that twinset raises on purpose; the command line prints its message without a traceback."""


class WrongUse(TwinsetError):
    """The recipe, an option or an input file is wrong; nothing was started. Exit code 2."""


class BuildFailed(TwinsetError):
    """Some shards, or the dataset as a whole, could not be finished; running the same command resumes. Exit code 1."""


def in_words(error: BaseException) -> str:
    """An error for people: twinset's own and the system's say what happened; others also where in the code."""
    if isinstance(error, TwinsetError | OSError):
        return "; ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
