"""Types of the fields that annotation records have, for pydantic, and why a record does not fit them."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.annotation_files import seconds, text_of

M = TypeVar("M", bound=BaseModel)


def _text_or_nothing(value: Any) -> Any:
    return value if isinstance(value, str) else ""


#: A time in a video, in seconds, as a number or the text of one.
Seconds = Annotated[float, BeforeValidator(seconds)]
#: As `Seconds`; None for anything else.
OptionalSeconds = Annotated[float | None, BeforeValidator(seconds)]
#: Text that is not empty, or a whole number.
Name = Annotated[str, BeforeValidator(text_of), Field(min_length=1)]
#: Text; empty for anything else.
OptionalText = Annotated[str, BeforeValidator(_text_or_nothing)]


def misfit(error: ValidationError) -> tuple[str, str]:
    """The first field of a record that does not fit its type, empty where the whole does not, and the problem.

    The problem names the place within the record: ``segments_info[2].area: Input should be a valid integer, not 1.5``.
    """
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] in ("model_type", "dataclass_type"):
        problem = "Input should be an object with named fields"
    if first["type"] != "missing":
        problem += f", not {first['input']!r:.60}"
    return str(first["loc"][0]) if first["loc"] else "", f"{place}: {problem}" if place else problem


def problems_of(error: ValidationError) -> str:
    """What is wrong, each problem behind its key path."""
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())


def read_words(path: Path, form: type[M]) -> M:
    """The vocabulary in a YAML file; raises `WrongUse` with what is wrong where."""
    try:
        return form.model_validate(load_yaml(path.read_bytes()))
    except ValidationError as error:
        raise WrongUse(f"{path}: not a vocabulary ({problems_of(error)}); correct the file") from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: not a vocabulary ({error}); correct the file") from error
