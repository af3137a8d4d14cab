"""Answers from a file into the page's own: every row is checked first, and all are taken or none."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import NAME, Answer, from_row
from twinset.review.exchange.label_studio import Row
from twinset.review.store import AnsweredOtherwise, AnswerStore, Asked, utc_now
from twinset.review.tasks import ReviewStage, ReviewTask

NAMED = 20  # problems that are named


@dataclass(frozen=True, slots=True)
class Imported:
    """new: answers that were stored; known: those that were there; others: rows of other stages, left out; unanswered:
    rows without an answer, left out."""

    new: int
    known: int
    others: int
    unanswered: int = 0


class _Problem(Exception):
    """Why a row is not taken. kind: what it is counted as."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def import_answers(
    rows: Iterable[Row], stage: ReviewStage, store: AnswerStore, annotator: str | None, origin: str
) -> Imported:
    """Store the answers of a file to the tasks of one stage.

    A row without a binding is taken to be about what the task shows now.

    Args:
        rows: of the file; those that name another stage are left out.
        annotator: who gave them; None: as the rows say.
        origin: what messages call the file.

    Raises:
        WrongUse: some row is not an answer to a task of the stage; nothing is stored.
    """
    tasks = {task.candidate.key: task for task in stage.tasks}
    problems: Counter[str] = Counter()
    named: list[str] = []
    found: dict[tuple[Asked, str], Answer] = {}
    others = unanswered = 0
    now, held = utc_now(), store.held()
    for row in rows:
        if not row.values:
            unanswered += 1
            continue
        if row.values.get("stage") not in (None, "", stage.name):
            others += 1
            continue
        try:
            answer, task = _answer(row.values, tasks, annotator, now)
            if (task.asked, answer.annotator) in found:
                raise _Problem("duplicate", f"{answer.annotator} answers {answer.task} twice in the file")
            before = held.get(task.asked, {}).get(answer.annotator)
            if before is not None and (before.answer, before.reason) != (answer.answer, answer.reason):
                raise _Problem(
                    "answered otherwise",
                    f"{answer.annotator} answered {answer.task} with {before.answer} before; undo it on the page first",
                )
        except _Problem as problem:
            problems[problem.kind] += 1
            if len(named) < NAMED:
                named.append(f"{row.place}: {problem.kind}: {problem}")
            continue
        found[task.asked, answer.annotator] = answer
    if problems:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(problems.items()))
        total = sum(problems.values())
        more = [f"and {total - NAMED:,} more"] if total > NAMED else []
        lines = [f"{origin}: {counts}; nothing was imported. Correct or remove these rows:", *named, *more]
        raise WrongUse("\n".join(lines))
    try:
        new = store.save_all(found.values())
    except AnsweredOtherwise as error:
        # Somebody answered on the page, or by another import, since the rows were checked.
        raise WrongUse(
            f"{origin}: {error}; nothing was imported. Correct that row, and import the file again"
        ) from error
    return Imported(new, len(found) - new, others, unanswered)


def _answer(
    values: Mapping[str, Any], tasks: Mapping[str, ReviewTask], annotator: str | None, now: str
) -> tuple[Answer, ReviewTask]:
    """The answer of a row, and its task; raises `_Problem`."""
    key, value, reason = (str(values.get(name) or "") for name in ("task", "answer", "reason"))
    task = tasks.get(key)
    if task is None:
        raise _Problem("unknown task", f"the stage asks nothing called {key[:100]!r}")
    if (binding := values.get("binding") or task.binding) != task.binding:
        raise _Problem("stale binding", f"{key} showed something else when it was answered ({str(binding)[:12]}…)")
    question = task.question
    options = question.layout(task.candidate).values
    if not question.takes(task.candidate, value):
        raise _Problem("unknown answer", f"{key}: {value[:40]!r} is none of {', '.join(options)}")
    if reason and (value not in question.drops or reason not in question.reasons):
        raise _Problem("unknown reason", f"{key}: {reason[:40]!r} is not a reason of {value!r}")
    who = annotator or str(values.get("annotator") or "")
    row = {
        **{"stage": task.stage, "task": key, "binding": task.binding, "annotator": who},
        **{"answer": value, "reason": reason, "shown": values.get("shown") or "[]", "at": values.get("at") or now},
        **{name: values[name] for name in ("position", "seconds") if name in values},
    }
    if not NAME.fullmatch(who):
        raise _Problem("no annotator", f"{key}: {who[:70]!r} is not an annotator's name; give one with --annotator")
    try:
        answer = from_row(row)
    except ValueError as error:
        raise _Problem("not an answer", f"{key}: {error}") from error
    if not {*answer.shown} <= {*options}:
        raise _Problem("unknown answer", f"{key}: shown {str(row['shown'])[:40]!r} is not a list of options")
    return answer, task
