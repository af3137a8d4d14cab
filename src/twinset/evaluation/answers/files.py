"""Free-form answers on disk, as SugarCrepe released those of GPT-4V.

    DIR/positive-first/SPLIT.json      the true caption was (1)
    DIR/negative-first/SPLIT.json      the true caption was (2)

A file is an object of ``{KEY: {"caption", "negative_caption", "filename", "answer": {"free_form_answer": …}}}``;
``answer`` may be the text itself, ``correct`` (a boolean) is what the writer of the file counted. Files may be named
``MODEL-SPLIT.json``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import read_json

Order = Literal["positive-first", "negative-first"]
ORDERS: tuple[Order, ...] = ("positive-first", "negative-first")
LAYOUT = "a folder holds positive-first/SPLIT.json and negative-first/SPLIT.json, as SugarCrepe's gpt-4v-results do"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to the question which of two captions fits an image.

    image: the file's name. captions: the true one, the negative one. counted: whether the file says it is right.
    """

    key: str
    image: str
    captions: tuple[str, str]
    text: str
    counted: bool | None


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The answers of a split in one order. name: below the folder. stray: what is not an answer, by key."""

    name: str
    split: str
    order: Order
    answers: tuple[Answered, ...]
    stray: Mapping[str, Any]


def read_answers(folder: Path) -> list[AnswerFile]:
    """All files of a folder, by split, positive first; raises `WrongUse` where one is not as described above."""
    found = dict[tuple[str, int], AnswerFile]()
    for number, order in enumerate(ORDERS):
        for path in sorted((folder / order).glob("*.json")):
            split = path.stem.rpartition("-")[2]
            if other := found.get((split, number)):
                raise WrongUse(
                    f"{path}: {other.name} is also of split {split}; keep the answers of one model in a folder"
                )
            found[split, number] = _read(path, split, order)
    if not found:
        raise WrongUse(f"{folder}: no answers; {LAYOUT}")
    for (split, number), one in found.items():
        if number and (first := found.get((split, 0))):
            _check_same(folder, first, one)
    return [found[at] for at in sorted(found)]


def _check_same(folder: Path, first: AnswerFile, second: AnswerFile) -> None:
    """Both orders are about the same images and captions, where they share a key."""
    asked = {one.key: one for one in first.answers}
    for one in second.answers:
        other = asked.get(one.key)
        if other is not None and (other.image, other.captions) != (one.image, one.captions):
            raise WrongUse(
                f"{folder / second.name}: {one.key}: another image or other captions than in {first.name}; the two "
                "orders are compared by key, so both files must be of one version of the split"
            )


def _read(path: Path, split: str, order: Order) -> AnswerFile:
    held = read_json(path)
    if not isinstance(held, dict):
        raise WrongUse(f"{path}: not a JSON object; write an object of answers by key")
    # A file of SugarCrepe's has a number `accuracy` beside the answers; keys of answers are numbers there.
    stray = {key: one for key, one in held.items() if not isinstance(one, dict) and not key.isdigit()}
    answers = tuple(_answered(path, key, one) for key, one in held.items() if key not in stray)
    if not answers:
        raise WrongUse(f"{path}: no answers; write an object of answers by key")
    return AnswerFile(f"{order}/{path.name}", split, order, answers, stray)


def _answered(path: Path, key: str, held: Any) -> Answered:
    if not isinstance(held, dict):
        raise WrongUse(f"{path}: {key}: not an object; write caption, negative_caption, filename and answer")
    said = held.get("answer")
    text = said.get("free_form_answer") if isinstance(said, dict) else said

    def checked(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise WrongUse(f"{path}: {key}: {name} is {'absent' if value is None else 'not a text'}; write a text")
        return value

    for value in (key, held.get("filename")):
        if isinstance(value, str) and not value.isprintable():
            raise WrongUse(f"{path}: {key!r}: keys and names of files must be printable; correct {value!r}")
    image, caption, negative = (checked(name, held.get(name)) for name in ("filename", "caption", "negative_caption"))
    text = checked("answer.free_form_answer", text)
    counted = held.get("correct")
    if counted is not None and not isinstance(counted, bool):
        raise WrongUse(f"{path}: {key}: correct is {counted!r}; write true or false, or leave it out")
    return Answered(key, image, (caption, negative), text, counted)
