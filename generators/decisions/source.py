"""The settings that all sources of people's decisions share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.locations import Location
from twinset.contracts.markdown import block_of, table
from twinset.contracts.source import Need, Place
from twinset.generators.decisions.agreement import share
from twinset.generators.decisions.protocol import Asking, Protocol, own_words, read_protocol
from twinset.generators.decisions.questions import question_of
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source


def _dropped(kinds: Mapping[str, Mapping[str, int]]) -> str:
    """A table of what was dropped by kind; intervals by Wilson's score."""
    reasons = sorted({name for counts in kinds.values() for name in counts if name != "asked"})
    rows = []
    every = {name: sum(counts.get(name, 0) for counts in kinds.values()) for name in ("asked", *reasons)}
    for kind, counts in [*kinds.items(), *([("all", every)] if len(kinds) > 1 else [])]:
        lost = sum(counts.get(reason, 0) for reason in reasons)
        shown = [f"{counts.get(reason, 0):,}" for reason in reasons]
        rows.append([kind or "all", f"{counts['asked']:,}", *shown, _with_interval(lost, counts["asked"])])
    return table(["kind", "asked", *reasons, "dropped (95 % interval, Wilson)"], rows)


def _percent(of_one: float) -> str:
    return f"{100 * of_one:.1f} %"


def _with_interval(count: int, of: int) -> str:
    found = share(count, of)
    return f"{_percent(count / of)} ({_percent(found.low)} to {_percent(found.high)})"


REPORT = "decisions.json"


class Decisions(Source):
    """What every stage of decisions can be set to.

    answers: the SQLite file that the review page writes, or a Parquet file exported from one; by default
    ``OUT/_review/answers.sqlite``. overlap: share of tasks (0-1) that ``overlap_answers`` people answer each; one does
    the others. overlap_answers: how many people answer a task of that share. enough: share of decisions that must be
    there before the build goes on; tasks without one are then rejected. gold: a CSV file with columns ``key`` and
    ``answer``, of tasks whose right answer is known; how often annotators give it is reported. protocol: in
    which words and order people are asked: ``bivlc`` (that paper's), or the path of a YAML file in the form of
    ``manifests/vocabularies/bivlc_surveys.yaml``; the page's own when absent. licence: of the captions.
    """

    answers: Annotated[Location, Place("decisions", "annotations")] | None = None
    overlap: float = Field(default=0.0, ge=0, le=1)
    overlap_answers: int = Field(default=2, ge=2, le=100)
    enough: float = Field(default=1.0, gt=0, le=1)
    gold: Annotated[Location, Place("file", "annotations")] | None = None
    protocol: Annotated[str, Place("words", "annotations")] | None = None
    licence: str = ""

    execution = ("answers",)  # decisions enter the plan, wherever answers lie
    makes = "table"
    paper = BIVLC
    verb = "asked of"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("card.md.j2")
    whole = True
    reasons: ClassVar[Mapping[str, str]] = {"undecided": "nobody has decided, or a tie was not settled"}

    @field_validator("answers", mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        if isinstance(value, str) and "://" in value:
            raise ValueError("is a URL, and SQLite needs a file of this machine; name one, or copy an export there")
        return value

    def said(self) -> Protocol | None:
        """The protocol, if one is set; raises `WrongUse` when it is not one."""
        return None if self.protocol is None else read_protocol(self.protocol)

    def asking(self, question: str) -> Asking:
        """How a question is asked; raises `WrongUse` when the protocol does not say."""
        said = self.said()
        return own_words(type(question_of(question))) if said is None else said.of(question)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.protocol"):
                self._check_protocol()
        if "annotations" in needs and find_spec("sklearn") is None:
            raise WrongUse(
                f"{key}: scikit-learn is not installed; agreement is measured with it: pip install 'twinset[review]'"
            )

    def _check_protocol(self) -> None:
        said = self.said()
        if said is not None and self.gold is not None and any(one.instances for one in said.questions.values()):
            raise WrongUse(
                "gives each annotator instances of their own, and gold tasks are asked of everyone; leave out gold, "
                "or name a protocol without instances"
            )

    def how_made(self, reports: Mapping[str, Any]) -> str:
        functions = {"dropped": _dropped, "percent": _percent, "with_interval": _with_interval}
        return block_of(
            self.card_template, "how_made", source=self, reports=reports, question_of=question_of, **functions
        )
