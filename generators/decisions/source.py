"""The settings that all sources of people's decisions share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from importlib.util import find_spec
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
    answers_needed,
    by_task,
    counting,
    decided,
    decisions_needed,
    read_gold,
    share,
)
from twinset.generators.decisions.answers import FILE, read_answers
from twinset.generators.decisions.pictures import Picture, photo_of, picture_of_stage
from twinset.generators.decisions.protocol import (
    Asking,
    Protocol,
    check_labels,
    of_whole_instances,
    own_words,
    read_protocol,
)
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.generators.decisions.questions import question_of
from twinset.generators.decisions.report import REPORT, Gathered, report_of
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder


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


def decision_of(task: TaskCandidate) -> Decision:
    """The decision that stands in a planned task."""
    fields = json.loads(task.decision)
    return Decision(**{**fields, "annotators": tuple(fields["annotators"])})


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

    version = 2
    candidate = TaskCandidate
    row_schema = COLUMNS

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

    @property
    def photo_folder(self) -> ImageFolder | None:
        """The folder of images that lie in no stage."""
        return None

    def measured(self) -> Mapping[str, Any]:
        """Further entries of its report (`generators.decisions.report.report_of`)."""
        return {}

    def inputs(self) -> str:
        """Digest of the earlier stages; not of decisions, which are fields of the candidates."""
        return digest([self.stage.earlier(name).digest for name in self.reads])

    def plan_inputs(self) -> str:
        """As `Source.plan_inputs`: the decisions, once there are enough of them. Answers are read again."""
        for read in ("gathered", "_report"):
            self.__dict__.pop(read, None)
        now = self.gathered
        if now.waiting is not None:
            return digest("waiting")
        return digest([{key: asdict(one) for key, one in now.decisions.items()}, self._report.decode()])

    def waiting(self) -> Waiting | None:
        return self.gathered.waiting

    def plan(self) -> Iterator[TaskCandidate]:
        now = self.gathered
        self._excluded = now.left_out
        for one in now.tasks:
            made = now.decisions.get(one.key) if now.waiting is None else None
            yield one if made is None else replace(one, decision=canonical_json(asdict(made)).decode())

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for one in cast(Sequence[TaskCandidate], candidates):
            if not one.decision:
                yield Rejected(one.key, "undecided", one.subject)
                continue
            made = decision_of(one)
            if made.reason:
                yield Rejected(one.key, made.reason, made.detail or made.choice)
            else:
                yield TableRows(one.key, [self.row(one, made)])

    def row(self, task: TaskCandidate, made: Decision) -> dict[str, Any]:
        """The row of a task."""
        number = self.chosen_image(task, made)
        return {
            "task_key": task.key,
            "question": task.question,
            "subject": task.subject,
            "choice": made.choice,
            "image_key": "" if number is None else task.images[number],
            "image_sha256": "" if number is None else task.image_sha256s[number],
            "binding": task.binding,
            "annotators": canonical_json(list(made.annotators)).decode(),
            "votes": made.votes,
            "agreement": made.agreement,
            "adjudicated": made.adjudicated,
            "right": made.choice == task.truth if task.truth else None,
        }

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int | None:
        """Number of the image that a decision chose; None where it is not about one."""
        return None

    def picture(self, task: TaskCandidate, number: int) -> Picture:
        """An image of a task, for the page.

        Raises:
            BrokenTar: it is absent from its stage, or not the one that was planned.
            WrongUse: it is a photo, and absent from its folder.
        """
        name, tar = task.images[number], task.image_tars[number]
        if tar:
            return picture_of_stage(self.pictured, name, tar, task.image_sha256s[number])
        return photo_of(self.photo_folder, name)

    def report_files(self) -> Mapping[str, bytes]:
        """``decisions.json`` (`generators.decisions.report`); nothing while decisions are missing."""
        return {REPORT: self._report} if self.gathered.waiting is None else {}

    def gold_answers(self, tasks: Iterable[TaskCandidate]) -> Mapping[str, str]:
        """Right answers by key of the task, of the CSV file of gold tasks. Raises `WrongUse`: it lacks a column, or is
        not about these tasks.
        """
        return {} if self.gold is None else read_gold(self.gold, tasks)

    @property
    def answers_place(self) -> Path:
        """The file of answers. Raises `WrongUse`: no file is named, and the dataset lies in a bucket."""
        if self.answers is not None:
            return self.answers
        out = self.stage.out
        if out is None or out.is_remote:
            raise WrongUse(
                f"{self.stage.name}: where answers are kept is not known, since the dataset is not in a local folder; "
                f"name their file with --set stages.{self.stage.name}.source.answers=FILE"
            )
        return Path(out.root) / FILE

    @cached_property
    def gathered(self) -> Gathered:
        """Tasks and answers as they were when they were last read."""
        left_out = LeftOut()
        return self._decided(list(self.tasks(left_out)), left_out)

    def needed(self, task: TaskCandidate) -> int:
        """How many people answer a task."""
        return answers_needed(self.asked_as(task).unit(task), self.overlap, self.overlap_answers)

    def asked_as(self, task: TaskCandidate) -> Asking:
        """How a task is asked. Raises `WrongUse`: the protocol does not say."""
        if task.question not in self._askings:
            self._askings[task.question] = asking = self.asking(task.question)
            check_labels(asking, task)
        return self._askings[task.question]

    @cached_property
    def _askings(self) -> dict[str, Asking]:
        return {}

    def _decided(self, tasks: Sequence[TaskCandidate], left_out: LeftOut) -> Gathered:
        gold = self.gold_answers(tasks)
        read = by_task(read_answers(self.answers_place, self.stage.name)) if tasks else {}
        counted = [counting(one, read.get(one.key, ())) for one in tasks]
        if tasks and self.asked_as(tasks[0]).instances:
            subjects = (one.subject for one in tasks)
            counted = of_whole_instances(zip(subjects, counted, strict=True))
        given = {one.key: answers for one, answers in zip(tasks, counted, strict=True)}
        found = {one.key: decided(one, given[one.key], self.needed(one), gold.get(one.key, "")) for one in tasks}
        decisions = {key: made for key, made in found.items() if made is not None}
        needed = decisions_needed(self.enough, len(tasks))
        missing = needed - len(decisions)
        return Gathered(tasks, left_out, gold, given, decisions, Waiting(missing, needed) if missing > 0 else None)

    @cached_property
    def _report(self) -> bytes:
        found = {**report_of(self.gathered), **self.measured()}
        if (said := self.said()) is not None and self.gathered.tasks:
            asking = self.asked_as(self.gathered.tasks[0])
            found["protocol"] = {
                "title": said.title,
                "instances": asking.instances,
                "digest": digest(asking.model_dump()),
            }
        return canonical_json(found) + b"\n"
