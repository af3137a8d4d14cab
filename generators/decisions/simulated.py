"""Answers of annotators who are no people, for rehearsals: they know the truth, and err."""

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.agreement import answers_needed, decided, share_of
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.protocol import Asking
from twinset.generators.decisions.question import TaskCandidate
from twinset.generators.decisions.questions import question_of
from twinset.generators.decisions.source import Decisions, Simulated

ADJUDICATOR = "simulated-adjudicator"


def simulated_answers(
    task: TaskCandidate, source: Decisions, how: Simulated, seed: int, stage: str, asking: Asking, gold: str = ""
) -> list[Answer]:
    """The answers of all annotators who are asked; in a tie also that of one who settles it, who errs as they do.

    Args:
        asking: how the question is asked.
        gold: as in `generators.decisions.agreement.decided`.

    Raises:
        WrongUse: the task does not say what is right.
    """
    unit = asking.unit(task)
    needed = answers_needed(unit, source.overlap, source.overlap_answers)
    # Everyone answers as many tasks as the others, and every pair of annotators has tasks in common.
    names = sorted((f"simulated-{n}" for n in range(how.number)), key=lambda name: (share_of(name, unit), name))
    given = [_answer(task, name, how.error_rate, seed, stage) for name in names[:needed]]
    if decided(task, given, needed, gold) is None:
        given.append(_answer(task, ADJUDICATOR, how.error_rate, seed, stage, adjudicated=True))
    return given


def _answer(
    task: TaskCandidate, annotator: str, error_rate: float, seed: int, stage: str, adjudicated: bool = False
) -> Answer:
    """The truth, or with the error rate e one of the k - 1 other values, each with probability e / (k - 1)."""
    values = question_of(task.question).layout(task).values
    if task.truth not in values:
        raise WrongUse(
            f"{stage}: what is right of {task.key} is not known, so that nobody can be simulated; set source.truth to "
            "a stage of image verification, or source.annotators.kind to people"
        )
    random = generator_for(seed, f"{stage} {annotator}", task.key)
    wrong = random.random() < error_rate
    others = [value for value in values if value != task.truth]
    value = others[int(random.integers(len(others)))] if wrong else task.truth
    return Answer(
        stage=stage,
        task=task.key,
        binding=task.binding,
        annotator=annotator,
        answer=value,
        simulated=True,
        adjudicated=adjudicated,
    )
