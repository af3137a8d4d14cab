"""The human baseline: which caption belongs to an image, or which image to a caption (BiVLC, section 3.2)."""

from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion
from twinset.generators.decisions.task import TaskCandidate


class Match(ReviewQuestion):
    """One image and two texts, or one text and two images; the task's truth says which is right."""

    name = "match"
    title = "Which one belongs to it?"
    instructions = (
        "Choose the description that fits the image best, or the image that fits the description best.",
        "Read to the end: the two often differ in one word, or in the order of words.",
        "Flaws of beauty never count: a malformed hand, face or thing is visible if you can tell what it is.",
    )
    examples = (
        Example(
            "A dog under a table: “A dog under a table” / “A table under a dog”", "the first", "the order of words"
        ),
    )
    settled = False

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the numbers of the two."""
        if len(task.images) == 1:
            return Layout((), (0,), tuple(Option(str(n), "Description", text=n) for n in range(2)))
        return Layout((0,), (), tuple(Option(str(n), "Image", image=n) for n in range(2)))
