"""Errors that are instructions: each message names the file, shard or key at fault and what to do about it."""

from __future__ import annotations


class TwinsetError(Exception):
    """Base of every error that twinset raises on purpose; the command line prints its message without a traceback."""


class WrongUse(TwinsetError):
    """The recipe, an option or an input file is wrong; nothing was started. Exit code 2."""


class BuildFailed(TwinsetError):
    """Some shards, or the dataset as a whole, could not be finished; running the same command resumes. Exit code 1."""
