"""What a stage of decisions did, in numbers for the cards of what is made from them: ``decisions.json``."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twinset.contracts.markdown import table
from twinset.contracts.parts import LeftOut, Waiting
from twinset.generators.decisions.agreement import agreement_among, share
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
    disagreement; by kind of subject how many were asked, and dropped for each reason; agreement by pair of annotators;
    accuracy on gold tasks; what was not asked.
    """
    answers = [answer for of_task in now.answers.values() for answer in of_task]
    question = now.tasks[0].question if now.tasks else ""
    agreement = agreement_among(question, answers, now.gold)
    kinds: dict[str, Counter[str]] = {}
    for task in now.tasks:
        counts, decision = kinds.setdefault(task.kind_name, Counter()), now.decisions.get(task.key)
        counts["asked"] += 1
        if reason := "undecided" if decision is None else decision.reason:
            counts[reason] += 1
    return {
        "question": question,
        "tasks": len(now.tasks),
        "undecided": len(now.tasks) - len(now.decisions),
        "adjudicated": sum(decision.adjudicated for decision in now.decisions.values()),
        "answers": dict(Counter(answer.annotator for answer in answers if not answer.adjudicated)),
        "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())},
        "agreement": {"pairs": [asdict(pair) for pair in agreement.pairs], "mean": agreement.mean},
        "gold": {name: asdict(right) for name, right in agreement.gold.items()},
        "left_out": dict(+now.left_out),
    }


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
        rows.append([kind or "all", *numbers, with_interval(sum(dropped), counts["asked"])])
    return table(["kind", "asked", *reasons, "dropped (95 % interval, Wilson)"], rows)


def with_interval(count: int, of: int) -> str:
    """A share in percent, with its interval."""
    interval = share(count, of)
    return f"{100 * count / of:.1f} % ({100 * interval.low:.1f} % to {100 * interval.high:.1f} %)"
