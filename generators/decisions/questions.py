"""The kinds of questions: which image, which caption, whether a pair is good (BiVLC, 3.1 and 3.2; EqBen, B.2)."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from twinset.contracts.doors import Registry
from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion, TaskCandidate

KINDS = {
    "best-image": "twinset.generators.decisions.questions:BestImage",
    "fits-caption": "twinset.generators.decisions.questions:FitsCaption",
    "keep-pair": "twinset.generators.decisions.questions:KeepPair",
    "match": "twinset.generators.decisions.questions:Match",
}
QUESTIONS = Registry[ReviewQuestion]("review question", ReviewQuestion, __name__, "twinset.questions")
NONE = "none"
_WORDS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))


def _words(name: str) -> tuple[str, tuple[str, ...], tuple[Example, ...]]:
    """Title, instructions and examples of a question."""
    words = _WORDS[name]
    return words["title"], tuple(words["instructions"]), tuple(Example(**fields) for fields in words["examples"])


def question_of(name: str) -> ReviewQuestion:
    """The question of a name; raises `UnknownKind`."""
    return QUESTIONS.find(name)()


class BestImage(ReviewQuestion):
    """One text, the caption, and k images of it: which shows it best, or none (BiVLC, section 3.1, step 3)."""

    name = "best-image"
    title, instructions, examples = _words(name)
    drops: ClassVar[Mapping[str, str]] = {NONE: "none-fits"}

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the images' numbers."""
        images = tuple(Option(str(number), "Image", image=number) for number in range(len(task.images)))
        return Layout((0,), (), images, (Option(NONE, "None of them"),))

    def compared(self, value: str) -> str:
        """Any image or none: more than one can be right (BiVLC, appendix I.3)."""
        return NONE if value == NONE else "any"


PHOTO, GENERATED, BOTH = "photo", "generated", "both"


class FitsCaption(ReviewQuestion):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption.

    An instance is ambiguous unless the photo is chosen (BiVLC, section 3.1, step 4).
    """

    name = "fits-caption"
    title, instructions, examples = _words(name)
    drops: ClassVar[Mapping[str, str]] = {GENERATED: "ambiguous", BOTH: "ambiguous"}

    def layout(self, task: TaskCandidate) -> Layout:
        options = (Option(PHOTO, "Image", image=0), Option(GENERATED, "Image", image=1))
        return Layout((0,), (), options, (Option(BOTH, "Both"),))


KEEP, DROP = "keep", "drop"


class KeepPair(ReviewQuestion):
    """Two texts and two images: caption 0 belongs to image 0, caption 1 to image 1."""

    name = "keep-pair"
    title, instructions, examples = _words(name)
    shuffled = False
    drops: ClassVar[Mapping[str, str]] = {DROP: "screened-out"}
    reasons: ClassVar[Mapping[str, str]] = _WORDS[name]["reasons"]

    def layout(self, task: TaskCandidate) -> Layout:
        return Layout((0, 1), (0, 1), (Option(KEEP, "Keep"),), (Option(DROP, "Drop"),))


class Match(ReviewQuestion):
    """One image and two texts, or one text and two images; the task's truth says which is right."""

    name = "match"
    title, instructions, examples = _words(name)
    parts = ("image-to-text", "text-to-image")
    settled = False

    def part(self, task: TaskCandidate) -> str:
        return self.parts[len(task.images) - 1]

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the numbers of the two."""
        if len(task.images) == 1:
            return Layout((), (0,), tuple(Option(str(n), "Description", text=n) for n in range(2)))
        return Layout((0,), (), tuple(Option(str(n), "Image", image=n) for n in range(2)))
