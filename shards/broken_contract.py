"""What the checks of sources, filters and caption scorers share (`check_source`, `check_filter`, `check_scorer`)."""

from collections.abc import Callable
from typing import TypeVar

from twinset.manifests.errors import TwinsetError, in_words
from twinset.manifests.source import PlacedSettings

T = TypeVar("T")


class BrokenContract(AssertionError):
    """A part does what the engine does not expect; the message says what, and what to correct."""


def expect(kept: bool, problem: str) -> None:
    """Raise `BrokenContract` where something is not kept."""
    if not kept:
        raise BrokenContract(problem)


def called(what: str, call: Callable[[], T]) -> T:
    """What a part gives; an error that no user of it could read is a broken contract."""
    try:
        return call()
    except TwinsetError:
        raise
    except Exception as error:
        raise BrokenContract(
            f"{what} raises {in_words(error)}; correct it, or raise WrongUse that names the input and the remedy"
        ) from error


def check_settings(settings: PlacedSettings) -> None:
    """Settings survive the way to a worker, and each reason is explained."""
    travelled = type(settings).model_validate(settings.model_dump(mode="json"))
    expect(travelled == settings, "settings change on the way through JSON; use types that pydantic writes and reads")
    name = type(settings).__name__
    for reason, meaning in settings.meanings.items():
        explained = isinstance(meaning, str) and bool(meaning.strip())
        expect(explained, f"reason {reason!r} of {name}.reasons has no meaning")
