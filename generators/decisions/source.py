"""What the sources of people's decisions share: tasks are planned with their decisions, if these have been made."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import pyarrow as pa
from pydantic import Field, field_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.locations import Location
from twinset.contracts.markdown import block_of, table
from twinset.contracts.parts import LeftOut, Waiting
from twinset.contracts.source import Need, Place
from twinset.generators.decisions.agreement import (
    agreement_among,
    counting,
    decided,
    decisions_needed,
    of_whole_instances,
    read_gold,
    share,
    share_of,
)
from twinset.generators.decisions.answers import FILE, Answer, read_answers
from twinset.generators.decisions.pictures import Picture, picture_of_stage
from twinset.generators.decisions.question import (
    Decision,
    Protocol,
    QuestionSurvey,
    TaskCandidate,
    decision_of,
    default_survey,
    load_protocol,
    question_of,
)
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage import layout

_TEXT = ("task_key", "question", "subject", "choice", "image_key", "image_sha256", "binding", "annotators")
COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _TEXT),
        pa.field("votes", pa.int32(), nullable=False),
        pa.field("agreement", pa.float64(), nullable=False),
        pa.field("adjudicated", pa.bool_(), nullable=False),
        pa.field("right", pa.bool_()),  # of a task whose truth is known
    ]
)


REPORT = "decisions.json"


@dataclass(frozen=True, slots=True)
class Gathered:
    """Tasks and the answers to them at one moment. They fit in memory: people answer thousands, not millions.

    answers: by task, those that count: given to what it shows now. decisions: by task, those that were made. gold:
    right answers by task, where they are known.
    """

    tasks: Sequence[TaskCandidate]
    left_out: LeftOut
    gold: Mapping[str, str]
    answers: Mapping[str, Sequence[Answer]]
    decisions: Mapping[str, Decision]
    waiting: Waiting | None


class Decisions(Source):
    """A row a task whose decision keeps its subject; any other task is rejected for its reason.

    A decision is a field of its candidate: what is made depends on the plan alone, while people go on answering.
    Subclasses say which tasks there are.

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

    version = 2
    candidate = TaskCandidate
    row_schema = COLUMNS
    execution = ("answers",)  # decisions enter the plan, wherever answers lie
    makes = "table"
    paper = BIVLC
    verb = "asked of"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("card.md.j2")
    whole = True
    reasons: ClassVar[Mapping[str, str]] = {"undecided": "nobody has decided, or a tie was not settled"}

    @abstractmethod
    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """All tasks in a fixed order, without decisions.

        Args:
            left_out: counts what is not asked, by reason.
        """

    @property
    @abstractmethod
    def pictured(self) -> FinishedStage:
        """The stage whose images are shown."""

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int | None:
        """Number of the image that a decision chose; None where it is not about one."""
        return None

    def measured(self) -> Mapping[str, Any]:
        """Further entries of its report (`_report`)."""
        return {}

    @field_validator("answers", mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        if isinstance(value, str) and "://" in value:
            raise ValueError("is a URL, and SQLite needs a file of this machine; name one, or copy an export there")
        return value

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" not in needs:
            return
        with naming(f"{key}.protocol"):
            if self.words and self.gold and any(survey.instances for survey in self.words.questions.values()):
                raise WrongUse(
                    "gives each annotator instances of their own, and gold tasks are asked of everyone; leave out "
                    "gold, or name a protocol without instances"
                )

    @cached_property
    def words(self) -> Protocol | None:
        """The protocol, if one is set; raises `WrongUse` when it is not one."""
        return None if self.protocol is None else load_protocol(self.protocol)

    def survey_of(self, task: TaskCandidate) -> QuestionSurvey:
        """How a task is asked. Raises `WrongUse`: the protocol does not say."""
        if self.words is None:
            return default_survey(type(question_of(task.question)))
        return self.words.of(task)

    def needed(self, task: TaskCandidate) -> int:
        """How many people answer a task: by the hash of its key, or of the instance that they answer whole."""
        unit = task.subject if self.survey_of(task).instances else task.key
        return self.overlap_answers if share_of("overlap", unit) < self.overlap else 1

    @property
    def answers_place(self) -> Path:
        """The file of answers. Raises `WrongUse`: no file is named, and the dataset lies in a bucket."""
        if self.answers is not None:
            return self.answers
        name, out = self.stage.name, self.stage.out
        if out is None or out.is_remote:
            raise WrongUse(
                f"{name}: where answers are kept is not known, since the dataset is not in a local folder; name their "
                f"file with --set stages.{name}.source.answers=FILE"
            )
        return Path(out.root) / FILE

    def gold_answers(self, tasks: Sequence[TaskCandidate]) -> Mapping[str, str]:
        """Right answers by key of the task. Raises `WrongUse`: the file is not a CSV file about these tasks."""
        return {} if self.gold is None else read_gold(self.gold, tasks)

    @cached_property
    def gathered(self) -> Gathered:
        """Tasks and answers as they were when they were last read."""
        left_out = LeftOut()
        tasks = list(self.tasks(left_out))
        gold = self.gold_answers(tasks)
        read = defaultdict[str, list[Answer]](list)
        for answer in read_answers(self.answers_place, self.stage.name) if tasks else ():
            read[answer.task].append(answer)
        counted = [counting(task, read[task.key]) for task in tasks]
        if tasks and self.survey_of(tasks[0]).instances:
            counted = of_whole_instances(zip((task.subject for task in tasks), counted, strict=True))
        answers, decisions = dict[str, list[Answer]](), dict[str, Decision]()
        for task, given in zip(tasks, counted, strict=True):
            answers[task.key] = given
            if decision := decided(task, given, self.needed(task), gold.get(task.key, "")):
                decisions[task.key] = decision
        needed = decisions_needed(self.enough, len(tasks))
        missing = needed - len(decisions)
        return Gathered(tasks, left_out, gold, answers, decisions, Waiting(missing, needed) if missing > 0 else None)

    @cached_property
    def _report(self) -> bytes:
        """What was asked and decided: ``decisions.json``, for the cards of what is made from the decisions.

        question; tasks, how many of them are undecided and adjudicated; answers by annotator, without those that
        settled a disagreement; by kind of subject how many were asked, and dropped for each reason; agreement by pair
        of annotators; accuracy on gold tasks; what was not asked; the protocol, if there is one.
        """
        tasks, decisions = self.gathered.tasks, self.gathered.decisions
        answers = [answer for given in self.gathered.answers.values() for answer in given]
        question = tasks[0].question if tasks else ""
        agreement = asdict(agreement_among(question, answers, self.gathered.gold))
        kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for task in tasks:
            decision = decisions.get(task.key)
            reason = "undecided" if decision is None else decision.reason
            kinds[task.kind_name].update(["asked", reason] if reason else ["asked"])
        report = {
            "question": question,
            "tasks": len(tasks),
            "undecided": len(tasks) - len(decisions),
            "adjudicated": sum(decision.adjudicated for decision in decisions.values()),
            "answers": Counter(answer.annotator for answer in answers if not answer.adjudicated),
            "kinds": kinds,
            "gold": agreement.pop("gold"),
            "agreement": agreement,
            "left_out": +self.gathered.left_out,
            **self.measured(),
        }
        if self.words is not None and tasks:
            survey = self.survey_of(tasks[0])
            words = {"title": self.words.title, "instances": survey.instances, "digest": digest(survey.model_dump())}
            report["protocol"] = words
        return canonical_json(report) + b"\n"

    def plan_inputs(self) -> str:
        """As `Source.plan_inputs`: the decisions, once there are enough of them. Answers are read again."""
        for read in ("gathered", "_report"):
            self.__dict__.pop(read, None)
        if self.gathered.waiting is not None:
            return digest("waiting")
        return digest([{key: asdict(made) for key, made in self.gathered.decisions.items()}, self._report.decode()])

    def waiting(self) -> Waiting | None:
        return self.gathered.waiting

    def plan(self) -> Iterator[TaskCandidate]:
        self._excluded = self.gathered.left_out
        decisions = {} if self.gathered.waiting else self.gathered.decisions
        for task in self.gathered.tasks:
            decision = decisions.get(task.key)
            yield replace(task, decision=canonical_json(asdict(decision)).decode()) if decision else task

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for task in cast(Sequence[TaskCandidate], candidates):
            if not task.decision:
                yield Rejected(task.key, "undecided", task.subject)
            elif (decision := decision_of(task)).reason:
                yield Rejected(task.key, decision.reason, decision.detail or decision.choice)
            else:
                yield TableRows(task.key, [self._row(task, decision)])

    def _row(self, task: TaskCandidate, decision: Decision) -> dict[str, Any]:
        number = self.chosen_image(task, decision)
        return {
            "task_key": task.key,
            "question": task.question,
            "subject": task.subject,
            "choice": decision.choice,
            "image_key": "" if number is None else task.images[number],
            "image_sha256": "" if number is None else task.image_sha256s[number],
            "binding": task.binding,
            "annotators": canonical_json(list(decision.annotators)).decode(),
            "votes": decision.votes,
            "agreement": decision.agreement,
            "adjudicated": decision.adjudicated,
            "right": decision.choice == task.truth if task.truth else None,
        }

    def report_files(self) -> Mapping[str, bytes]:
        """``decisions.json`` (`_report`); nothing while decisions are missing."""
        return {REPORT: self._report} if self.gathered.waiting is None else {}

    def how_made(self, reports: Mapping[str, Any]) -> str:
        functions = {"question_of": question_of, "dropped": dropped_table, "share": share}
        return block_of(self.card_template, "how_made", source=self, reports=reports, **functions)

    def picture(self, task: TaskCandidate, number: int) -> Picture:
        """An image of a task, for the page; raises `BrokenTar`: it is absent, or not the one that was planned."""
        tar, sha256 = task.image_tars[number], task.image_sha256s[number]
        return picture_of_stage(self.pictured, task.images[number], tar, sha256)


def read_report(earlier: FinishedStage) -> dict[str, Any]:
    """The report of a finished stage of decisions."""
    report: dict[str, Any] = json.loads(earlier.store.read(layout.meta(earlier.home, REPORT)))
    return report


def dropped_table(kinds: Mapping[str, Mapping[str, int]]) -> str:
    """A table, for the card, of what was dropped by kind; intervals by Wilson's score."""
    reasons = sorted({name for counts in kinds.values() for name in counts if name != "asked"})
    total = sum((Counter(counts) for counts in kinds.values()), Counter())
    rows = []
    for kind, counts in [*kinds.items(), *([("all", total)] if len(kinds) > 1 else [])]:
        dropped = [counts.get(reason, 0) for reason in reasons]
        numbers = [f"{number:,}" for number in (counts["asked"], *dropped)]
        rows.append([kind or "all", *numbers, str(share(sum(dropped), counts["asked"]))])
    return table(["kind", "asked", *reasons, "dropped (95 % interval, Wilson)"], rows)
