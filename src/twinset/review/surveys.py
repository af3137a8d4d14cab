"""Which instances each annotator answers whole, where a protocol gives everyone instances of their own."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from twinset.generators.decisions.answers import Answer
from twinset.review.store import Asked
from twinset.review.tasks import ReviewTask

SURVEY_SECONDS = 3600.0  # instances that somebody was given, and did not end, are given to others after this

Instance = tuple[str, str]  # stage and key of the subject
Held = Mapping[Asked, Mapping[str, Answer]]


@dataclass(frozen=True, slots=True)
class _State:
    """An instance, for one annotator. done: answered whole by this one; begun, kept: answered in part, shown lately;
    lacking: whether it needs one more annotator than answered it whole or were shown it lately; left_behind: others
    answered it in part."""

    done: bool
    begun: bool
    kept: bool
    lacking: bool
    left_behind: bool


class Surveys:
    """The instances of the stages whose protocol has them. Whoever comes gets instances that nobody has, in an order of
    no meaning, until there are as many as the protocol says: those begun first, those that others left behind last.
    """

    def __init__(self, tasks: Sequence[ReviewTask]) -> None:
        self._instances: dict[Instance, list[ReviewTask]] = {}
        for task in tasks:
            if task.survey.instances:
                self._instances.setdefault(task.instance, []).append(task)

    def of(self, annotator: str, held: Held, shown: Callable[[ReviewTask], Collection[str]]) -> set[Instance]:
        """The instances of an annotator, those that are done included.

        Args:
            held: all answers.
            shown: who was shown a task lately.
        """
        states = {one: _state(tasks, annotator, held, shown) for one, tasks in self._instances.items()}
        found = {one for one, state in states.items() if state.done}
        room: dict[str, int] = {}
        for stage, subject in self._instances:
            tasks = self._instances[stage, subject]
            room[stage] = room.get(stage, tasks[0].survey.instances) - ((stage, subject) in found)
        for one in sorted(states, key=lambda one: (*_rank(states[one]), _shuffled(one))):
            if not states[one].done and states[one].lacking and room[one[0]] > 0:
                room[one[0]] -= 1
                found.add(one)
        return found


def _state(
    tasks: Sequence[ReviewTask], annotator: str, held: Held, shown: Callable[[ReviewTask], Collection[str]]
) -> _State:
    answered = [held.get(task.asked, {}) for task in tasks]
    whole, some = set[str].intersection(*map(set, answered)), set[str]().union(*answered)
    now = set[str]().union(*(shown(task) for task in tasks))
    counted = [[given[name] for name in whole] for given in answered]
    missing = max(task.missing(given) for task, given in zip(tasks, counted, strict=True))
    return _State(
        done=annotator in whole,
        begun=annotator in some,
        kept=annotator in now,
        lacking=len(now - whole - {annotator}) < missing,
        left_behind=bool(some - whole - now - {annotator}),
    )


def _rank(state: _State) -> tuple[bool, bool, bool]:
    return not state.begun, not state.kept, state.left_behind


def _shuffled(instance: Instance) -> bytes:
    return hashlib.blake2b("\0".join(instance).encode(), digest_size=8).digest()
