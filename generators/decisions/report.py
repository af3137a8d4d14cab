"""What a stage of decisions did, in numbers for the cards of what is made from them: ``decisions.json``."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twinset.contracts.parts import LeftOut, Waiting
from twinset.generators.decisions.agreement import agreement_among
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage import layout

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


def report_of(now: Gathered) -> dict[str, Any]:
    """What was asked and decided.

    question; tasks, how many of them are undecided and adjudicated; answers by annotator, without those that settled a
    disagreement; by kind of subject how many were asked and dropped, by reason; agreement by pair of annotators;
    accuracy on gold tasks; what was not asked.
    """
    answers = [answer for some in now.answers.values() for answer in some]
    question = now.tasks[0].question if now.tasks else ""
    agreement = agreement_among(question, answers, now.gold)
    return {
        "question": question,
        "tasks": len(now.tasks),
        "undecided": len(now.tasks) - len(now.decisions),
        "adjudicated": sum(one.adjudicated for one in now.decisions.values()),
        "answers": dict(sorted(Counter(one.annotator for one in answers if not one.adjudicated).items())),
        "kinds": _by_kind(now.tasks, now.decisions),
        "agreement": {"pairs": [asdict(one) for one in agreement.pairs], "mean": agreement.mean},
        "gold": {name: asdict(one) for name, one in agreement.gold.items()},
        "left_out": dict(sorted((+now.left_out).items())),
    }


def read_report(earlier: FinishedStage) -> dict[str, Any]:
    """The report of a finished stage of decisions."""
    found: dict[str, Any] = json.loads(earlier.store.read(layout.meta(earlier.home, REPORT)))
    return found


def _by_kind(asked: Sequence[TaskCandidate], decisions: Mapping[str, Decision]) -> dict[str, dict[str, int]]:
    """By kind of subject: ``asked``, and how many were dropped for each reason."""
    found: dict[str, Counter[str]] = {}
    for one in asked:
        counts = found.setdefault(one.kind_name, Counter())
        counts["asked"] += 1
        made = decisions.get(one.key)
        if made is None or made.reason:
            counts["undecided" if made is None else made.reason] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(found.items())}
