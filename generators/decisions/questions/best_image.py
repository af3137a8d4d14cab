"""Which of k images shows a caption best, or none (BiVLC, section 3.1, step 3)."""

from collections.abc import Mapping
from typing import ClassVar

from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion
from twinset.generators.decisions.task import TaskCandidate

NONE = "none"


class BestImage(ReviewQuestion):
    """One text, the caption, and k images of it."""

    name = "best-image"
    title = "Which image shows the description?"
    instructions = (
        "Choose the image that shows what the description says. If several do, take the best one.",
        "Everything that the description states must be visible: every thing, how many, its colour, who does what.",
        "Flaws of beauty never count: a malformed hand, face or thing is visible if you can tell what it is.",
        "If no image shows all of it, answer “none”.",
    )
    examples = (
        Example("A red car beside a blue van", "none", "the only image with both has a blue car and a red van"),
        Example("Two dogs asleep on a sofa", "the image with two dogs", "one has five legs, which is a flaw of beauty"),
        Example("A man hands a cup to a child", "none", "in all images the child hands it to the man"),
    )
    drops: ClassVar[Mapping[str, str]] = {NONE: "none-fits"}

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the images' numbers."""
        images = tuple(Option(str(number), "Image", image=number) for number in range(len(task.images)))
        return Layout((0,), (), images, (Option(NONE, "None of them"),))

    def compared(self, value: str) -> str:
        """Any image or none: more than one can be right (BiVLC, appendix I.3)."""
        return NONE if value == NONE else "any"
