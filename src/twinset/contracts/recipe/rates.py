"""What candidates of stages took where they were measured: a table that a recipe may bring, for estimates."""

from __future__ import annotations

from pydantic import Field

from twinset.contracts.source import Settings


class Rate(Settings):
    """What one candidate of a stage takes.

    kept: share that becomes samples (0-1). bytes: that are written. seconds: of a core, or of a GPU. start: such
    seconds that a process takes before its first candidate, for libraries and models. gpu: whether seconds are a GPU's.
    answers, prompt_tokens, completion_tokens: of language models; tokens that they read and wrote. each: candidates for
    each one kept of the stage that it reads, the first where it reads several.
    """

    kept: float = Field(ge=0, le=1)
    bytes: float = Field(ge=0)
    seconds: float = Field(ge=0)
    start: float = Field(default=0, ge=0)
    gpu: bool = False
    answers: float = Field(default=0, ge=0)
    prompt_tokens: float = Field(default=0, ge=0)
    completion_tokens: float = Field(default=0, ge=0)
    each: float | None = Field(default=None, ge=0)


class Rates(Settings):
    """Measured rates, from which `twinset plan` estimates what no receipt tells yet.

    machine: that they were measured on. stages: rates by the name of a stage or subset.
    """

    machine: str
    stages: dict[str, Rate]
