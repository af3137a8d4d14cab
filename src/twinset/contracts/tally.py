"""What language models were asked and answered, in numbers."""

from __future__ import annotations

from typing import NamedTuple


class Tally(NamedTuple):
    """Answers, and the tokens that they took. prompt_tokens, completion_tokens: read and written."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Tally) -> Tally:
        """The sum of both."""
        return Tally(*(mine + more for mine, more in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.answers:,} answers, {self.prompt_tokens:,} tokens read and {self.completion_tokens:,} written"
