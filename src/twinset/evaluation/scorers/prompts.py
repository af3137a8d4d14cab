"""Prompts: what multimodal language models are asked about images and captions, by name (``prompts.yaml``) or from a
file of one's own with the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.record_fields import problems_of
from twinset.models.encoders.contract import Direction

FILE = Path(__file__).with_name("prompts.yaml")
_PLACE = re.compile(r"\{(\w+)\}")


def filled(form: str, captions: Sequence[str]) -> str:
    """A prompt with captions in its places: ``{caption1}`` and ``{caption2}`` of two, ``{caption}`` of one. What a
    caption holds is never read as a place.
    """
    names = (
        {"caption": captions[0]} if len(captions) == 1 else {f"caption{n}": one for n, one in enumerate(captions, 1)}
    )
    return _PLACE.sub(lambda found: names.get(found[1], found[0]), form)


class _Prompt(BaseModel):
    """version: raised with every change. source: whose words they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    places: ClassVar[dict[str, tuple[str, ...]]]  # of captions, by the key of the words
    version: int = Field(ge=1)
    source: str = Field(min_length=1)
    name: str = ""

    @property
    def told(self) -> str:
        """Name and version, as files of scores say it."""
        return f"{self.name} {self.version}"

    def digest(self) -> str:
        """Of all that is asked."""
        return digest(self.model_dump(exclude={"name", "version", "source"}))

    @model_validator(mode="after")
    def _has_places(self) -> Self:
        for key, places in self.places.items():
            form = getattr(self, key)
            if form is not None and sorted(_PLACE.findall(form)) != sorted(places):
                wanted = " and ".join(f"{{{one}}}" for one in places) or "no {place}"
                raise ValueError(f"{key}: must have {wanted}, each once")
        return self


class ChoicePrompt(_Prompt):
    """Which one fits. Only the directions that it has words for are asked.

    text: which of two captions fits an image. image: which of two images a caption. pairing: both images and both
    captions at once, answered as "1;2" (EqBen, 5.5). images: shown as two inputs, or joined side by side. answer: in
    the model's own words, or the likelier of the options "1" and "2".
    """

    places = {"text": ("caption1", "caption2"), "image": ("caption",), "pairing": ("caption1", "caption2")}
    asks: Literal["choice"]
    text: str | None = None
    image: str | None = None
    pairing: str | None = None
    images: Literal["separate", "joined"] = "separate"
    answer: Literal["free", "options"] = "free"

    @model_validator(mode="after")
    def _is_whole(self) -> ChoicePrompt:
        if not self.directions:
            raise ValueError("asks nothing; write text, image or pairing")
        if self.pairing is not None and self.answer == "options":
            raise ValueError("answer: a pairing is answered freely; leave answer out")
        return self

    @property
    def directions(self) -> tuple[Direction, ...]:
        named: tuple[Direction, ...] = ("text", "image", "pairing")
        return tuple(one for one in named if getattr(self, one) is not None)


class YesPrompt(_Prompt):
    """Whether an image shows a caption; the score is P(yes). text: has {caption}."""

    places = {"text": ("caption",)}
    asks: Literal["yes"]
    text: str


class LikelihoodPrompt(_Prompt):
    """How likely a caption is as the answer about an image: log P(caption | image, text).

    score: the sum over its tokens, their mean, or the sum less alpha times that with a null image.
    """

    places = {"text": ()}
    asks: Literal["likelihood"]
    text: str
    score: Literal["sum", "mean", "debiased"] = "sum"


Prompt = ChoicePrompt | YesPrompt | LikelihoodPrompt
_FORM: TypeAdapter[dict[str, Prompt]] = TypeAdapter(
    dict[str, Annotated[Prompt, Field(discriminator="asks")]], config=ConfigDict(regex_engine="python-re")
)


def read_prompts(path: Path) -> dict[str, Prompt]:
    """The prompts of a file by name; raises `WrongUse` where it cannot be read or one is wrong."""
    try:
        found = _FORM.validate_python(load_yaml(path.read_bytes()))
    except ValidationError as error:
        raise WrongUse(f"{path}: {problems_of(error)}; {FILE.name} of twinset shows the form") from error
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: not a file of prompts ({error}); {FILE.name} of twinset shows the form") from error
    return {name: one.model_copy(update={"name": name}) for name, one in found.items()}


def prompt_of(text: str, model: str) -> Prompt:
    """The prompt of a name, or of a file (``FILE.yaml`` of one prompt, ``FILE.yaml#NAME`` of several).

    Args:
        model: as ``--model`` names it, for messages.
    """
    file, _, name = text.partition("#")
    if not file.endswith((".yaml", ".yml")):
        file, name = "", text
    prompts = read_prompts(Path(file).expanduser() if file else FILE)
    if not name and len(prompts) == 1:
        return next(iter(prompts.values()))
    if name not in prompts:
        listed = ", ".join(prompts)
        raise WrongUse(f"--model {model}: there is no prompt {name!r}; name one of {listed}, or FILE.yaml#NAME")
    return prompts[name]
