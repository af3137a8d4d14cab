"""What generators of decisions share: tasks are planned together with their decisions, if these have been made."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.parts import LeftOut, Waiting
from twinset.generators.decisions.agreement import (
    answers_needed,
    by_task,
    counting,
    decided,
    decisions_needed,
    read_gold,
)
from twinset.generators.decisions.answers import FILE, read_answers
from twinset.generators.decisions.pictures import Picture, photo_of, picture_of_stage
from twinset.generators.decisions.protocol import Asking, check_labels, of_whole_instances
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.generators.decisions.report import Gathered, report_of
from twinset.generators.decisions.source import REPORT, Decisions
from twinset.shards.contracts import Generator
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder

D = TypeVar("D", bound=Decisions)

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


class DecisionGenerator(Generator[D], Generic[D]):
    """A row a task whose decision keeps its subject; any other task is rejected for its reason.

    A decision is a field of its candidate: what is made depends on the plan alone, while people go on answering.
    Subclasses say which tasks there are.
    """

    version = 2
    candidate = TaskCandidate
    columns = COLUMNS
    libraries: ClassVar[tuple[str, ...]] = ()

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
    def photos(self) -> ImageFolder | None:
        """The folder of images that lie in no stage."""
        return None

    def measured(self) -> Mapping[str, Any]:
        """Further entries of its report (`generators.decisions.report.report_of`)."""
        return {}

    def inputs(self) -> str:
        """Digest of the earlier stages; not of decisions, which are fields of the candidates."""
        return digest([self.context.earlier(one).digest for one in self.source.reads])

    def plan_inputs(self) -> str:
        """As `Generator.plan_inputs`: the decisions, once there are enough of them. Answers are read again."""
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
        self.excluded = now.left_out
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
        return photo_of(self.photos, name)

    def reports(self) -> Mapping[str, bytes]:
        """``decisions.json`` (`generators.decisions.report`); nothing while decisions are missing."""
        return {REPORT: self._report} if self.gathered.waiting is None else {}

    def gold(self, tasks: Iterable[TaskCandidate]) -> Mapping[str, str]:
        """Right answers by key of the task, of the CSV file of gold tasks. Raises `WrongUse`: it lacks a column, or is
        not about these tasks.
        """
        return {} if self.source.gold is None else read_gold(self.source.gold, tasks)

    @property
    def answers_place(self) -> Path:
        """The file of answers. Raises `WrongUse`: no file is named, and the dataset lies in a bucket."""
        if self.source.answers is not None:
            return self.source.answers
        out = self.context.out
        if out is None or out.is_remote:
            raise WrongUse(
                f"{self.name}: where answers are kept is not known, since the dataset is not in a local folder; name "
                f"their file with --set stages.{self.name}.source.answers=FILE"
            )
        return Path(out.root) / FILE

    @cached_property
    def gathered(self) -> Gathered:
        """Tasks and answers as they were when they were last read."""
        left_out = LeftOut()
        return self._decided(list(self.tasks(left_out)), left_out)

    def needed(self, task: TaskCandidate) -> int:
        """How many people answer a task."""
        return answers_needed(self.asking(task).unit(task), self.source.overlap, self.source.overlap_answers)

    def asking(self, task: TaskCandidate) -> Asking:
        """How a task is asked. Raises `WrongUse`: the protocol does not say."""
        if task.question not in self._askings:
            self._askings[task.question] = asking = self.source.asking(task.question)
            check_labels(asking, task)
        return self._askings[task.question]

    @cached_property
    def _askings(self) -> dict[str, Asking]:
        return {}

    def _decided(self, tasks: Sequence[TaskCandidate], left_out: LeftOut) -> Gathered:
        gold = self.gold(tasks)
        read = by_task(read_answers(self.answers_place, self.name)) if tasks else {}
        counted = [counting(one, read.get(one.key, ())) for one in tasks]
        if tasks and self.asking(tasks[0]).instances:
            subjects = (one.subject for one in tasks)
            counted = of_whole_instances(zip(subjects, counted, strict=True))
        given = {one.key: answers for one, answers in zip(tasks, counted, strict=True)}
        found = {one.key: decided(one, given[one.key], self.needed(one), gold.get(one.key, "")) for one in tasks}
        decisions = {key: made for key, made in found.items() if made is not None}
        needed = decisions_needed(self.source.enough, len(tasks))
        missing = needed - len(decisions)
        return Gathered(tasks, left_out, gold, given, decisions, Waiting(missing, needed) if missing > 0 else None)

    @cached_property
    def _report(self) -> bytes:
        found = {**report_of(self.gathered), **self.measured()}
        if (said := self.source.said()) is not None and self.gathered.tasks:
            asking = self.asking(self.gathered.tasks[0])
            found["protocol"] = {
                "title": said.title,
                "instances": asking.instances,
                "digest": digest(asking.model_dump()),
            }
        return canonical_json(found) + b"\n"


def decision_of(task: TaskCandidate) -> Decision:
    """The decision that stands in a planned task."""
    fields = json.loads(task.decision)
    return Decision(**{**fields, "annotators": tuple(fields["annotators"])})
