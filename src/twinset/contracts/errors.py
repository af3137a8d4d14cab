"""Errors that are instructions: each message names the file, shard or key at fault and what to do about it."""

from __future__ import annotations

import difflib
import shlex
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager


class TwinsetError(Exception):
    """Base of every error that twinset raises on purpose; the command line prints its message without a traceback."""


class WrongUse(TwinsetError):
    """The recipe, an option or an input file is wrong; nothing was started. Exit code 2."""


@contextmanager
def naming(place: str, wrong: type[Exception] = WrongUse) -> Iterator[None]:
    """Errors as `WrongUse` with a place, such as a key path, before the message. wrong: of which kind they are."""
    try:
        yield
    except wrong as error:
        raise WrongUse(f"{place}: {error}") from error


class BuildFailed(TwinsetError):
    """Some shards, or the dataset as a whole, could not be finished; running the same command resumes. Exit code 1."""


class DecisionsMissing(BuildFailed):
    """People have not decided enough; all that does not wait for them is built. Exit code 3.

    out: folder or URL of the dataset. missing: by stage, how many decisions are missing and how many are needed.
    """

    def __init__(self, out: str, missing: Mapping[str, tuple[int, int]]) -> None:
        super().__init__(out, missing)
        self.out, self.missing = out, dict(missing)

    @classmethod
    def of_all(cls, errors: Sequence[DecisionsMissing]) -> DecisionsMissing:
        """One error for several stages that wait."""
        return cls(errors[0].out, {stage: counts for error in errors for stage, counts in error.missing.items()})

    def __str__(self) -> str:
        waiting = "; ".join(f"{stage}: {missing_words(*counts)}" for stage, counts in self.missing.items())
        return f"{waiting}; ask people with: twinset review {shlex.quote(self.out)}; then run the same build again"


def missing_words(missing: int, needed: int) -> str:
    """How many decisions are missing, for people."""
    return f"{missing:,} of {needed:,} decisions {'is' if missing == 1 else 'are'} missing"


def suggested(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that is not known, for messages."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"name one of {', '.join(names)}"


def in_words(error: BaseException) -> str:
    """An error for people: twinset's own and the system's say what happened; others also where in the code."""
    if isinstance(error, TwinsetError | OSError):
        return "; ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])
    if isinstance(error, MemoryError):
        return "memory runs out; make fewer shards at a time, or use a larger machine"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
