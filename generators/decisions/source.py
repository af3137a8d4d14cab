"""What the sources of people's decisions share: tasks are planned with their decisions, once these have been made."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import Field, field_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.locations import VOCABULARIES, Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import Place
from twinset.generators.decisions.agreement import agreement_among, of_whole_instances, share_of
from twinset.generators.decisions.answers import FILE, Answer, read_answers
from twinset.generators.decisions.question import (
    Decision,
    Protocol,
    QuestionSurvey,
    ReviewQuestion,
    TaskCandidate,
    decision_of,
)
from twinset.generators.papers import BIVLC
from twinset.generators.record_fields import read_words
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage import layout

COLUMNS = pa.schema(
    pa.field(name, pa.string(), nullable=False)
    for name in ("task_key", "question", "subject", "choice", "image_key", "image_sha256", "binding", "annotators")
)
REPORT = "decisions.json"


@dataclass(frozen=True, slots=True)
class Gathered:
    """Tasks and the answers to them at one moment. They fit in memory: people answer thousands, not millions.

    answers: by task, those that count. decisions: by task, those that were made.
    """

    tasks: Sequence[TaskCandidate]
    left_out: LeftOut
    answers: Mapping[str, Sequence[Answer]]
    decisions: Mapping[str, Decision]


class Decisions(Source):
    """A row a task whose decision keeps its subject; any other task is rejected for its reason.

    A decision is a field of its candidate: what is made depends on the plan alone, while people go on answering.
    Subclasses say which tasks there are, and what is asked (``asks``).

    answers: the SQLite file that the review page writes, or a Parquet file exported from one; by default
    ``OUT/_review/answers.sqlite``. overlap: share of tasks (0-1) that ``overlap_answers`` people answer each; one does
    the others. overlap_answers: how many people answer a task of that share; after a tie one more does. protocol:
    ``bivlc`` asks in that paper's words and order; the page's own when absent. licence: of the captions.
    """

    answers: Annotated[Location, Place("decisions", "annotations")] | None = None
    overlap: float = Field(default=0.0, ge=0, le=1)
    overlap_answers: int = Field(default=2, ge=2, le=100)
    protocol: Literal["bivlc"] | None = None
    licence: str = ""

    asks: ClassVar[type[ReviewQuestion]]
    version = 3
    candidate = TaskCandidate
    row_schema = COLUMNS
    execution = ("answers",)  # decisions enter the plan, wherever answers lie
    makes = "table"
    paper = BIVLC
    verb = "asked of"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("card.md.j2")
    whole = True

    @abstractmethod
    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """All tasks in a fixed order, without decisions.

        Args:
            left_out: counts what is not asked, by reason.
        """

    def task(self, *identity: str, images: Sequence[tuple[str, str, str]], **fields: Any) -> TaskCandidate:
        """A task of this identity.

        Args:
            images: key or name, tar and sha256 of each image that is shown, as `TaskCandidate` has them.
        """
        names, tars, sha256s = zip(*images, strict=True)
        return TaskCandidate(
            key=sample_key(self.stage.name, *identity),
            identity=identity_of(*identity),
            question=self.asks.name,
            images=names,
            image_tars=tars,
            image_sha256s=sha256s,
            **fields,
        )

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

    @cached_property
    def survey(self) -> QuestionSurvey:
        """How people are asked. Raises `WrongUse`: the protocol does not say."""
        if self.protocol is None:
            return QuestionSurvey(blocks=(self.asks.words,))
        questions = read_words(VOCABULARIES / f"{self.protocol}_surveys.yaml", Protocol).root
        if self.asks.name not in questions:
            raise WrongUse(f"protocol {self.protocol} does not say how {self.asks.name} is asked; leave it out")
        return questions[self.asks.name]

    def needed(self, task: TaskCandidate) -> int:
        """How many people answer a task: by the hash of its key, or of the instance that they answer whole."""
        unit = task.subject if self.survey.instances else task.key
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

    def counted(self, tasks: Sequence[TaskCandidate], answers: Sequence[Iterable[Answer]]) -> list[list[Answer]]:
        """Those of the answers to each task that count: to what it shows now, with an option that it has, and from
        annotators who answered its instance whole where that is asked."""
        question = self.asks()
        counted = [
            [a for a in given if a.binding == task.binding and question.takes(task, a.answer)]
            for task, given in zip(tasks, answers, strict=True)
        ]
        return of_whole_instances(tasks, counted) if self.survey.instances else counted

    def decided(self, task: TaskCandidate, answers: Sequence[Answer]) -> Decision | None:
        """What answers that count come to; None where they are too few, or a tie: then one more annotator is asked."""
        return self.asks().decide(answers) if len(answers) >= self.needed(task) else None

    @cached_property
    def gathered(self) -> Gathered:
        """Tasks and answers as they were when they were last read."""
        left_out = LeftOut()
        tasks = list(self.tasks(left_out))
        read = defaultdict[str, list[Answer]](list)
        for answer in read_answers(self.answers_place, self.stage.name) if tasks else ():
            read[answer.task].append(answer)
        counted = self.counted(tasks, [read[task.key] for task in tasks])
        answers = {task.key: given for task, given in zip(tasks, counted, strict=True)}
        decisions = ((task.key, self.decided(task, answers[task.key])) for task in tasks)
        return Gathered(tasks, left_out, answers, {key: made for key, made in decisions if made is not None})

    @cached_property
    def _report(self) -> bytes:
        """What was asked and decided: ``decisions.json``, for the cards of what is made from the decisions.

        question; tasks; answers by annotator; by kind of subject how many were asked, and dropped for each reason;
        agreement by pair of annotators.
        """
        answered = [(self.needed(task), self.gathered.answers[task.key]) for task in self.gathered.tasks]
        kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for task in self.gathered.tasks:
            decision = self.gathered.decisions.get(task.key)
            counted = ["asked", decision.reason] if decision and decision.reason else ["asked"]
            for kind in {task.kind_name or "all", "all"}:
                kinds[kind].update(counted)
        report = {
            "question": self.asks.name,
            "tasks": len(self.gathered.tasks),
            "answers": Counter(answer.annotator for _, given in answered for answer in given),
            "kinds": kinds,
            "agreement": agreement_among(self.asks(), answered),
            **self.measured(),
        }
        return canonical_json(report) + b"\n"

    def plan_inputs(self) -> str:
        """As `Source.plan_inputs`: the decisions, once all are made. Answers are read again."""
        for read in ("gathered", "_report"):
            self.__dict__.pop(read, None)
        if self.waiting() is not None:
            return digest("waiting")
        return digest([{key: asdict(made) for key, made in self.gathered.decisions.items()}, self._report.decode()])

    def waiting(self) -> tuple[int, int] | None:
        needed = len(self.gathered.tasks)
        missing = needed - len(self.gathered.decisions)
        return (missing, needed) if missing else None

    def plan(self) -> Iterator[TaskCandidate]:
        self.excluded.clear()
        self.excluded.update(self.gathered.left_out)
        self.excluded.examples += self.gathered.left_out.examples
        decisions = {} if self.waiting() else self.gathered.decisions
        for task in self.gathered.tasks:
            decision = decisions.get(task.key)
            yield replace(task, decision=canonical_json(asdict(decision)).decode()) if decision else task

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for task in cast(Sequence[TaskCandidate], candidates):
            if (decision := decision_of(task)).reason:
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
        }

    def report_files(self) -> Mapping[str, bytes]:
        """``decisions.json`` (`_report`); nothing while decisions are missing."""
        return {REPORT: self._report} if self.waiting() is None else {}

    def picture(self, task: TaskCandidate, number: int) -> bytes:
        """An image of a task, as it is stored; raises `BrokenTar`: it is absent, or not the one that was planned."""
        return picture_of(self.pictured, task, number)


def picture_of(stage: FinishedStage, task: TaskCandidate, number: int) -> bytes:
    """As `Decisions.picture`. stage: whose images are shown."""
    tar, (key, _, role) = task.image_tars[number], task.images[number].partition("/")
    stored, role = stage.samples([(tar, key)])[key], role or "image"
    stage.check_images(tar, stored, {role: task.image_sha256s[number]})
    return stored.images[role]


def read_report(earlier: FinishedStage) -> dict[str, Any]:
    """The report of a finished stage of decisions."""
    report: dict[str, Any] = json.loads(earlier.store.read(layout.meta(earlier.home, REPORT)))
    return report
