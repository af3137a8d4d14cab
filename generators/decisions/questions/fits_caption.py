"""Which of two images fits the original caption, or both: an instance is ambiguous unless it is the photo (BiVLC,
section 3.1, step 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from generators.decisions.question import Example, Layout, Option, Question
from generators.decisions.task import TaskCandidate

PHOTO, GENERATED, BOTH = "photo", "generated", "both"


class FitsCaption(Question):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption."""

    name = "fits-caption"
    title = "Which image fits the description?"
    instructions = (
        "Choose the image that fits the description better.",
        "If the description is just as true of the other one, answer “both”.",
        "What an image shows beyond the description does not count against it.",
        "Flaws of drawing are fine, and so is the style: a photo is not better for being a photo.",
    )
    examples = (
        Example("A cat on a chair", "both", "one cat wears a hat, of which the description says nothing"),
        Example("A boy kicks a ball", "the image in which he kicks", "in the other one he holds it"),
    )
    drops: ClassVar[Mapping[str, str]] = {GENERATED: "ambiguous", BOTH: "ambiguous"}

    def layout(self, task: TaskCandidate) -> Layout:
        """As `Question.layout`."""
        options = (Option(PHOTO, "Image", image=0), Option(GENERATED, "Image", image=1))
        return Layout((0,), (), options, (Option(BOTH, "Both"),))
