"""Tasks and answers as Label Studio's JSON, with the labelling interface and the images beside it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from twinset.cards.rendering import render
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer, to_row
from twinset.review.showing import NO_POSITION, shown_options
from twinset.review.tasks import ReviewTask
from twinset.shards.storage.whole_file import whole_file, write_text

#: All tasks, each with its answers, also those without one; and what gives an image of a task.
Answered = Sequence[tuple[ReviewTask, Sequence[Answer]]]
Show = Callable[[ReviewTask, int], bytes]
#: The address at which the page serves an image of a task; None: files name none.
Address = Callable[[ReviewTask, int], str] | None


@dataclass(frozen=True, slots=True)
class Row:
    """An answer as a file has it. place: where it stands. values: by column of `Answer`; columns may be absent;
    empty for a task that nobody answered."""

    place: str
    values: Mapping[str, Any] = field(default_factory=dict)


class Form(ABC):
    """A form of file; `review.exchange.forms.FORMS` names all.

    suffix: of its files. pictured: whether it writes images beside the file.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    pictured: ClassVar[bool] = False

    @abstractmethod
    def write(self, path: Path, answered: Answered, picture: Show, address: Address = None) -> None:
        """Write tasks and their answers into a file, which is there whole or not at all; with addresses of images, it
        names these instead of files beside it.
        """

    @abstractmethod
    def read(self, path: Path) -> Iterator[Row]:
        """The answers in a file; raises `WrongUse` when it is not of this form."""


CONTROL, REASON, OBJECT = "answer", "reason", "title"  # names of the tags that results refer to
EVERYBODY = "label-studio"  # Label Studio shows everyone one order of options: that of this name
OURS = "twinset"
SAID = ("answer", "reason")  # of an answer that was exported: whether an annotation is still that answer
KEPT = ("annotator", "shown", "position", "at")  # of it: what comes back as it was
TEMPLATES = Path(__file__).parents[1] / "templates"


class LabelStudio(Form):
    """A task each in ``FILE.json``, ``FILE.xml`` with the interface, and ``FILE_images/``.

    The data of a task holds texts and images in the order in which they are shown; choices are ``1`` to ``k`` by this
    order, so that a choice does not tell what it stands for, and the labels of the extra options. Images are named as
    Label Studio's local storage serves them, with the folder of the file as its root; or by their addresses, without
    the folder.
    """

    name, suffix, pictured = "label-studio", ".json", True

    def write(self, path: Path, answered: Answered, picture: Show, address: Address = None) -> None:
        """As `Form.write`; the tasks must be of one kind of question, not one that puts options in order. Raises
        `WrongUse` when they are not.
        """
        if any(task.question.ranked for task, _ in answered):
            raise WrongUse(f"{path}: Label Studio's choices have no order; export as .parquet or .csv")
        shapes = {_shape(task) for task, _ in answered}
        if len({task.question.name for task, _ in answered}) > 1 or len(shapes) > 1:
            raise WrongUse(
                f"{path}: an interface of Label Studio shows tasks of one kind and layout; export one stage with "
                "--stage, or in another form"
            )
        folder = path.with_name(f"{path.stem}_images")
        tasks = []
        for task, answers in answered:
            urls = []
            for number in range(len(task.candidate.images)):
                if address:
                    urls.append(address(task, number))
                    continue
                name = f"{task.id}-{number}.jpg"
                with whole_file(folder / name) as beside:
                    beside.write_bytes(picture(task, number))
                urls.append(f"/data/local-files/?d={folder.name}/{name}")
            tasks.append({"data": _data(task, urls), "annotations": [_annotation(task, one) for one in answers]})
        if answered:
            write_text(path.with_suffix(".xml"), _interface(answered[0][0]))
        write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1))

    def read(self, path: Path) -> Iterator[Row]:
        """As `Form.read`; annotations that were skipped are left out."""
        try:
            tasks = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise WrongUse(f"{path}: not JSON ({error}); export it again, or name another file") from error
        if not isinstance(tasks, list):
            raise WrongUse(f"{path}: not a list of tasks; export it as JSON, not as JSON-MIN")
        for number, task in enumerate(tasks, 1):
            place = f"task {number}"
            annotations = task.get("annotations") if isinstance(task, Mapping) else None
            data = task.get("data") if isinstance(task, Mapping) else None
            if not isinstance(annotations, list) or not isinstance(data, Mapping):
                raise WrongUse(f"{path}: {place} has no data and annotations; export it as JSON, not as JSON-MIN")
            for annotation in annotations:
                if isinstance(annotation, Mapping) and not annotation.get("was_cancelled"):
                    try:
                        yield Row(place, _values(data, annotation))
                    except (TypeError, ValueError, AttributeError) as error:
                        raise WrongUse(
                            f"{path}: {place}: an annotation is not Label Studio's ({error}); export it again"
                        ) from error


def _shape(task: ReviewTask) -> tuple[int, ...]:
    layout = task.question.layout(task.candidate)
    return len(layout.texts), len(layout.images), len(layout.options)


def _choice(task: ReviewTask, value: str) -> str:
    """An answer as a choice of the interface."""
    for position, option in enumerate(shown_options(task, EVERYBODY), 1):
        if option.value == value:
            return str(position)
    extra = task.question.layout(task.candidate).extra
    return next((one.label for one in extra if one.value == value), value)  # a stranger's file may hold any answer


def _data(task: ReviewTask, urls: Sequence[str]) -> dict[str, Any]:
    candidate, layout = task.candidate, task.question.layout(task.candidate)
    options = shown_options(task, EVERYBODY)
    choices = {_choice(task, one.value): one.value for one in (*options, *layout.extra)}
    return {
        "title": task.words.title,
        **{f"text{at}": candidate.texts[number] for at, number in enumerate(layout.texts)},
        **{f"image{at}": urls[number] for at, number in enumerate(layout.images)},
        **{f"option{at}": urls[one.image] for at, one in enumerate(options, 1) if one.image is not None},
        **{f"option{at}": candidate.texts[one.text] for at, one in enumerate(options, 1) if one.text is not None},
        OURS: {"stage": task.stage, "task": candidate.key, "binding": task.binding, "choices": choices},
    }


def _annotation(task: ReviewTask, answer: Answer) -> dict[str, Any]:
    about = to_row(answer)

    def result(control: str, choice: str) -> dict[str, Any]:
        return {
            "id": f"{control}-{answer.annotator}",
            "from_name": control,
            "to_name": OBJECT,
            "type": "choices",
            "value": {"choices": [choice]},
            "meta": {OURS: {name: about[name] for name in (*SAID, *KEPT)}},
        }

    results = [result(CONTROL, _choice(task, answer.answer))]
    if answer.reason:
        results.append(result(REASON, answer.reason))
    return {"result": results, "was_cancelled": False, "ground_truth": False, "lead_time": answer.seconds}


def _values(data: Mapping[str, Any], annotation: Mapping[str, Any]) -> dict[str, Any]:
    """What an annotation says, by column; what is not understood is left out, and found missing later."""
    ours = data.get(OURS)
    task: Mapping[str, Any] = ours if isinstance(ours, Mapping) else {}
    listed = task.get("choices")
    choices: Mapping[str, Any] = listed if isinstance(listed, Mapping) else {}
    results = {one.get("from_name"): one for one in annotation.get("result") or () if isinstance(one, Mapping)}
    values = {name: task[name] for name in ("stage", "task", "binding") if name in task}
    values |= {"annotator": _who(annotation), "seconds": annotation.get("lead_time") or 0.0}
    values["at"] = annotation.get("created_at") or ""
    if (choice := _first(results.get(CONTROL))) is not None:
        values["answer"] = choices.get(choice, choice)
        values["shown"] = json.dumps([choices[at] for at in sorted(filter(str.isdigit, choices), key=int)])
        values["position"] = int(choice) - 1 if choice.isdigit() else NO_POSITION
    if (reason := _first(results.get(REASON))) is not None:
        values["reason"] = reason
    # What twinset wrote itself comes back as it was, unless it was changed there or copied for somebody else.
    before = (results.get(CONTROL) or {}).get("meta")
    told = before.get(OURS) if isinstance(before, Mapping) else None
    if not isinstance(told, Mapping) or annotation.get("parent_annotation"):
        return values
    if [told.get(name, "") for name in SAID] != [values.get(name, "") for name in SAID]:
        return {**values, "at": annotation.get("updated_at") or values["at"]}
    return {**values, **{name: told[name] for name in KEPT if name in told}}


def _who(annotation: Mapping[str, Any]) -> str:
    by = annotation.get("completed_by")
    if isinstance(by, Mapping):
        by = by.get("email") or by.get("id")
    return "" if by is None else str(by) if isinstance(by, str) else f"{EVERYBODY}-{by}"


def _first(result: Mapping[str, Any] | None) -> str | None:
    value = (result or {}).get("value")
    found = value.get("choices") if isinstance(value, Mapping) else None
    return str(found[0]) if isinstance(found, list) and found else None


def _interface(task: ReviewTask) -> str:
    """The labelling interface of a kind of task."""
    layout, options = task.question.layout(task.candidate), shown_options(task, EVERYBODY)
    tags = {"control": CONTROL, "reason": REASON, "object": OBJECT}
    return render(
        "label_studio.xml.j2",
        TEMPLATES,
        question=task.question,
        words=task.words,
        layout=layout,
        options=options,
        **tags,
    )
