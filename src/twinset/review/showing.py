"""A task as one annotator sees it: its options in an order of their own, under names that tell nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twinset.contracts.canonical import generator_for
from twinset.generators.decisions.question import Option
from twinset.review.tasks import ReviewTask

NO_POSITION = -1
EXTRA_KEY = "0"
_SEED = 0  # the order is the same on every day and machine: an annotator who reloads sees what was seen before


@dataclass(frozen=True, slots=True)
class Chosen:
    """An answer as it is stored. shown: values in the order shown; position: among these, of extra options none."""

    value: str
    shown: tuple[str, ...]
    position: int


def shown_options(task: ReviewTask, annotator: str) -> tuple[Option, ...]:
    """The options in the order that this annotator sees; without those that are never shuffled."""
    options = task.question.layout(task.candidate).options
    if not task.question.shuffled:
        return options
    order = generator_for(_SEED, task.stage, f"{task.candidate.key} {annotator}").permutation(len(options))
    return tuple(options[at] for at in order)


def chosen(task: ReviewTask, annotator: str, name: str) -> Chosen | None:
    """What the page's name of an option, or of a ranked question its names in order, stands for; None when there is no
    such option.
    """
    shown = tuple(option.value for option in shown_options(task, annotator))
    extra = task.question.layout(task.candidate).extra
    named = {f"o{position}": Chosen(value, shown, position) for position, value in enumerate(shown)}
    named |= {f"x{number}": Chosen(option.value, shown, NO_POSITION) for number, option in enumerate(extra)}
    if not task.question.ranked:
        return named.get(name)
    order = [named[part].value for part in name.split(" ") if part in named]
    value = " ".join(order)
    complete = len(order) == len(name.split(" ")) and task.question.takes(task.candidate, value)
    return Chosen(value, shown, shown.index(order[0])) if complete else None


def as_json(task: ReviewTask, annotator: str, image_url: Callable[[ReviewTask, int], str]) -> dict[str, Any]:
    """A task as JSON for the page. It says neither which option is right nor what any of them is.

    Args:
        image_url: of an image of a task.
    """
    question, candidate, words = task.question, task.candidate, task.words
    layout = question.layout(candidate)

    def url(number: int | None) -> str | None:
        return None if number is None else image_url(task, number)

    return {
        "id": task.id,
        "stage": task.stage,
        "question": question.name,
        "block": f"{task.stage} {task.block}",
        "part": f"part {task.block + 1} of {blocks}" if (blocks := len(task.survey.blocks)) > 1 else "",
        "title": words.title,
        "instructions": list(words.instructions),
        "examples": [example.model_dump() for example in words.examples],
        "statement": {
            "texts": [candidate.texts[number] for number in layout.texts],
            "images": [url(number) for number in layout.images],
        },
        "options": [
            {
                "value": f"o{position}",
                "label": option.label,
                "image": url(option.image),
                "text": None if option.text is None else candidate.texts[option.text],
            }
            for position, option in enumerate(shown_options(task, annotator))
        ],
        "extra": [
            {"value": f"x{number}", "label": option.label, "key": EXTRA_KEY}
            for number, option in enumerate(layout.extra)
        ],
        "reasons": dict(question.reasons),
        "ranked": question.ranked,
    }
