"""Prompts: what multimodal language models are asked about images and captions, by name (``prompts.yaml``) or from a
file of one's own with the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.record_fields import problems_of
from twinset.models.encoders.contract import Direction

FILE = Path(__file__).with_name("prompts.yaml")
_PLACE = re.compile(r"\{(\w+)\}")
_TWO = ["caption1", "caption2"]


def filled(form: str, captions: Sequence[str]) -> str:
    """A prompt with captions in its places: ``{caption1}`` and ``{caption2}`` of two, ``{caption}`` of one. What a
    caption holds is never read as a place.
    """
    names = dict(zip(["caption"] if len(captions) == 1 else _TWO, captions, strict=True))
    return _PLACE.sub(lambda match: names.get(match[1], match[0]), form)


class Prompt(BaseModel):
    """What is asked. version: raised with every change. source: whose words they are.

    asks: for a choice, or whether an image shows a caption (``text``). text: which of two captions fits an image.
    image: which of two images a caption. pairing: both images and both captions at once, answered as "1;2" (EqBen,
    5.5). images: shown as two inputs, or joined side by side.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    asks: Literal["choice", "yes"]
    version: Annotated[int, Field(ge=1)]
    source: Annotated[str, Field(min_length=1)]
    name: str = ""
    text: str | None = None
    image: str | None = None
    pairing: str | None = None
    images: Literal["separate", "joined"] = "separate"

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(direction for direction in ("text", "image", "pairing") if getattr(self, direction) is not None)

    @model_validator(mode="after")
    def _has_places(self) -> Self:
        if not self.directions or (self.asks == "yes" and self.directions != ("text",)):
            raise ValueError("asks nothing; write text, or for a choice text, image or pairing")
        for key in self.directions:
            places = ["caption"] if key == "image" or self.asks == "yes" else _TWO
            if sorted(_PLACE.findall(getattr(self, key))) != places:
                raise ValueError(f"{key}: must have {' and '.join(f'{{{place}}}' for place in places)}, each once")
        return self


_PROMPTS = TypeAdapter(dict[str, Prompt])


def prompt_of(model: str, default: str) -> Prompt:
    """The prompt that a model's name has, ``KIND/PROMPT:…``: a name, or a file of one, ``FILE.yaml``; else that of the
    name ``default``.
    """
    name = model.partition(":")[0].partition("/")[2] or default
    own = name.endswith((".yaml", ".yml"))
    path = Path(name).expanduser() if own else FILE
    try:
        prompts = _PROMPTS.validate_python(load_yaml(path.read_bytes()))
    except (ValidationError, OSError, RecursionError, yaml.YAMLError) as error:
        problem = problems_of(error) if isinstance(error, ValidationError) else f"not a file of prompts ({error})"
        raise WrongUse(f"{path}: {problem}; {FILE.name} of twinset shows the form") from error
    if own and len(prompts) == 1:
        (name,) = prompts
    if name not in prompts:
        listed = ", ".join(prompts)
        raise WrongUse(f"--model {model}: there is no prompt {name!r}; name one of {listed}, or a FILE.yaml of one")
    return prompts[name].model_copy(update={"name": name})
