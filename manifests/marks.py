"""What stands in ``Annotated[...]`` of settings: marks, found wherever they are within a type."""

from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class KeyFor:
    """Marks a setting that names the environment variable with the key of a server.

    server: the setting beside it that holds the server's URL.
    """

    server: str


@cache
def marks(settings: type[BaseModel], mark: Any) -> dict[str, Any]:
    """The marks of a type by the name of their setting."""
    return {
        name: one
        for name, field in settings.model_fields.items()
        for one in (*field.metadata, *_metadata(field.annotation))
        if isinstance(one, mark)
    }


def types_in(annotation: Any) -> list[Any]:
    """All types within a type, such as those of a union or of a tuple."""
    return [annotation, *(one for inner in get_args(annotation) for one in types_in(inner))]


def _metadata(annotation: Any) -> list[Any]:
    """Everything that stands in ``Annotated[...]`` anywhere within a type, such as in ``Location | None``."""
    return [one for inner in types_in(annotation) for one in getattr(inner, "__metadata__", ())]
