"""Sources that ask a language model about captions, by prompts that are a setting."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.locations import Location
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.negative_captions.instructions import (
    FIELD,
    Instructions,
    Judged,
    instructions,
    judged,
    schema_of,
)
from twinset.generators.negative_captions.kinds import NegativeCandidate
from twinset.models.engines import EngineSource
from twinset.models.language_models.answers import Request


class PromptedSource(EngineSource):
    """What a language model is asked, one request a caption and kind.

    prompts: YAML file of what a language model is asked, in the form of
    ``manifests/vocabularies/negative_prompts.yaml``, which is the default.
    """

    prompts: Annotated[Location, Place("file", "annotations")] | None = None

    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "answers", "engines")

    @property
    def asked_for(self) -> Sequence[str]:
        """Kinds of captions that are asked for."""
        raise NotImplementedError

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if self.prompts is not None and "annotations" in needs:
            with naming(f"{key}.prompts"):
                self.asked  # noqa: B018 - it is read

    @cached_property
    def asked(self) -> Instructions:
        """What its language model is asked.

        Raises `WrongUse`: the file of prompts is not one, or lacks a kind; or its answers are no JSON, which the engine
        would hold them to.
        """
        asked = instructions(None if self.prompts is None else Path(self.prompts))
        if lacking := [kind for kind in self.asked_for if kind not in asked.prompts.kinds]:
            raise WrongUse(f"{self.prompts}: has no prompt of {lacking[0]}; add it, or ask for other kinds")
        marked = [kind for kind in self.asked_for if asked.prompts.kinds[kind].answer_after]
        if marked and getattr(self.engine, "answer_format", "text") != "text":
            raise WrongUse(f"{self.prompts}: answers of {marked[0]} are no JSON; set engine.answer_format to text")
        return asked

    def weights(self) -> Mapping[str, str]:
        """Also of the prompts."""
        return {**super().weights(), "prompts": self.asked.digest}

    def written(self, candidates: Sequence[NegativeCandidate]) -> Iterator[Judged]:
        """What is written of each candidate's caption, or why nothing is, in order."""
        requests = []
        for candidate in candidates:
            number = int(generator_for(self.stage.seed, self.stage.name, candidate.key).integers(2**31))
            requests.append(Request(self.asked.chat(candidate.negative_kind, candidate.caption, False), number, ()))
        whole = list(dict.fromkeys(requests))
        answers = self.worker.answers(whole, schema_of(FIELD)) if whole else []
        known = dict(zip(whole, answers, strict=True))
        for candidate, request in zip(candidates, requests, strict=True):
            yield judged(self.asked, candidate.negative_kind, candidate.caption, known[request])
