"""Which of two images fits the original caption, or both: an instance is ambiguous unless it is the photo (BiVLC,
section 3.1, step 4)."""

from collections.abc import Mapping
from typing import ClassVar

from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion
from twinset.generators.decisions.task import TaskCandidate

PHOTO, GENERATED, BOTH = "photo", "generated", "both"


class FitsCaption(ReviewQuestion):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption."""

    name = "fits-caption"
    title = "Which image fits the description?"
    instructions = (
        "An image fits if everything that the description states is visible: every thing, how many, its colour, who "
        "does what. What it shows beyond that does not count against it.",
        "If one image fits, choose it. If both fit, answer “both”. If neither does, choose the one that shows more.",
        "Flaws of beauty never count: a malformed hand, face or thing is visible if you can tell what it is. Nor does "
        "style: a photo is not better for being a photo.",
    )
    examples = (
        Example("A cat on a chair", "both", "one cat wears a hat, of which the description says nothing"),
        Example("A boy kicks a ball", "the image in which he kicks", "in the other one he holds it"),
        Example("A man with an umbrella", "both", "one umbrella is bent, and you can tell that it is one"),
    )
    drops: ClassVar[Mapping[str, str]] = {GENERATED: "ambiguous", BOTH: "ambiguous"}

    def layout(self, task: TaskCandidate) -> Layout:
        options = (Option(PHOTO, "Image", image=0), Option(GENERATED, "Image", image=1))
        return Layout((0,), (), options, (Option(BOTH, "Both"),))
