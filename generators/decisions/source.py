"""The settings that all sources of people's decisions share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from twinset.generators.decisions.agreement import share
from twinset.generators.decisions.questions import question_of
from twinset.generators.papers import BIVLC
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import Location
from twinset.manifests.markdown import table
from twinset.manifests.source import Need, Place, PlacedSettings
from twinset.shards.contracts import Source


def words_of(one: Mapping[str, Any]) -> str:
    """Markdown: what was asked of whom, what was dropped by kind, and how well annotators agree."""
    asked, made = one["tasks"] - one["carried"], one["simulated"]
    title = question_of(one["question"]).title if one["question"] else ""
    answers = sum(one["answers"].values())
    if made is None:
        people = len(one["answers"])
        who = f"{people} {'person' if people == 1 else 'people'} gave {answers:,} answer{'' if answers == 1 else 's'}"
    else:
        who = (
            f"**nobody was asked: the {answers:,} answers are those of {made['number']} simulated annotators**, who "
            f"know the truth and err in {_percent(made['error_rate'])} of answers"
        )
    text = f"“{title}” was asked in {asked:,} {'task' if asked == 1 else 'tasks'}; {who}."
    for count, was, were, what in (
        (one["carried"], "was", "were", "decided in an earlier round and not asked again"),
        (one["adjudicated"], "disagreement was", "disagreements were", "settled by one more answer"),
        (one["undecided"], "was", "were", "left undecided, and dropped"),
    ):
        if count:
            text += f" {count:,} {was if count == 1 else were} {what}."
    if asked:
        text += f"\n\n{_dropped(one['kinds'])}"
    return text + _agreement(one) + _gold(one["gold"]) + _recall(one.get("verification")) + "\n"


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


def _agreement(one: Mapping[str, Any]) -> str:
    pairs, mean = one["agreement"]["pairs"], one["agreement"]["mean"]
    if mean is None:
        return "\nNo two annotators answered the same tasks, or all said the same: agreement is not measured.\n"
    said = [_kappa(pair) for pair in pairs if pair["kappa"] is not None]
    of = " (any image or none)" if one["question"] == "best-image" else ""
    if len(said) == 1:
        return f"\nCohen's kappa{of} of the two annotators: {said[0]}.\n"
    return f"\nCohen's kappa{of}: mean {mean:.2f} over {len(said)} pairs of annotators: {'; '.join(said)}.\n"


def _percent(of_one: float) -> str:
    return f"{100 * of_one:.1f} %"


def _with_interval(count: int, of: int) -> str:
    found = share(count, of)
    return f"{_percent(count / of)} ({_percent(found.low)} to {_percent(found.high)})"


def _kappa(pair: Mapping[str, Any]) -> str:
    return f"{pair['kappa']:.2f} ({pair['low']:.2f} to {pair['high']:.2f}, {pair['tasks']:,} tasks)"


def _gold(gold: Mapping[str, Mapping[str, Any]]) -> str:
    if not gold:
        return ""
    right, of = (sum(one[name] for one in gold.values()) for name in ("count", "of"))
    return f"\nOf {of:,} answers to gold tasks are right: {_with_interval(right, of)}.\n"


def _recall(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    text = (
        f"\nVerification let {found['passed']:,} captions through; of {found['passed_fitting']:,} an image fits. It "
        f"dropped {found['dropped']:,}; {found['audited']:,} of these were asked about all the same, and of "
        f"{found['audited_fitting']:,} an image fits."
    )
    if found["recall"] is None:
        return text + " Its recall cannot be told.\n"
    return text + (
        f" Its recall is {_percent(found['recall'])} ({_percent(found['low'])} to {_percent(found['high'])}: Wilson's "
        "interval of the audited share, 95 %).\n"
    )


REPORT = "decisions.json"


class People(PlacedSettings):
    """People answer, on the page of ``twinset review``."""

    kind: Literal["people"] = "people"


class Simulated(PlacedSettings):
    """Nobody answers: annotators are simulated, who know the truth.

    number: how many there are. error_rate: share of answers (0-1) that are wrong, each wrong option as often.
    """

    kind: Literal["simulated"]
    number: int = Field(default=2, ge=1, le=100)
    error_rate: float = Field(default=0.0, ge=0, le=1)


Annotators = Annotated[People | Simulated, Field(discriminator="kind")]


class Decisions(Source):
    """What every stage of decisions can be set to.

    answers: the SQLite file that the review page writes, or a Parquet file exported from one; by default
    ``OUT/_review/answers.sqlite``. overlap: share of tasks (0-1) that ``overlap_answers`` people answer each; one does
    the others. overlap_answers: how many people answer a task of that share. enough: share of decisions that must be
    there before the build goes on; tasks without one are then rejected. gold: a CSV file with columns ``key`` and
    ``answer``, of tasks whose right answer is known; how often annotators give it is reported. annotators: people, or
    simulated ones. licence: of the captions.
    """

    answers: Annotated[Location, Place("cache", "annotations")] | None = None
    overlap: float = Field(default=0.0, ge=0, le=1)
    overlap_answers: int = Field(default=2, ge=2, le=100)
    enough: float = Field(default=1.0, gt=0, le=1)
    gold: Annotated[Location, Place("file", "annotations")] | None = None
    annotators: Annotators = People()
    licence: str = "the captions stay under the terms of their source"

    execution = ("answers",)  # decisions enter the plan, wherever answers lie
    makes = "table"
    paper = BIVLC
    verb = "asked of"
    reports = (REPORT,)
    whole = True
    reasons: ClassVar[Mapping[str, str]] = {"undecided": "nobody has decided, or a tie was not settled"}

    @property
    def simulated(self) -> bool:
        """Whether nobody answers."""
        return isinstance(self.annotators, Simulated)

    @field_validator("answers", mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        if isinstance(value, str) and "://" in value:
            raise ValueError("is a URL, and SQLite needs a file of this machine; name one, or copy an export there")
        return value

    @model_validator(mode="after")
    def _enough_annotators(self) -> Decisions:
        made = self.annotators
        if isinstance(made, Simulated) and self.overlap > 0 and made.number < self.overlap_answers:
            raise ValueError(
                f"overlap_answers asks for {self.overlap_answers} answers to a task, and annotators.number is "
                f"{made.number}; set one of them"
            )
        return self

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; also what measures agreement."""
        super().check_inputs(key, needs)
        if "annotations" in needs and find_spec("sklearn") is None:
            raise WrongUse(
                f"{key}: scikit-learn is not installed; agreement is measured with it: pip install 'twinset[review]'"
            )

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """Who decided, how well they agree, and what they dropped."""
        return words_of(reports[REPORT]) if REPORT in reports else ""
