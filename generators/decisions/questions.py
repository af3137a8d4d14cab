"""The kinds of questions: which image, which caption, whether a pair is good (BiVLC, 3.1 and 3.2; EqBen, B.2)."""

from collections.abc import Mapping
from typing import ClassVar

from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion, TaskCandidate
from twinset.manifests.doors import Registry

KINDS = {
    "best-image": "twinset.generators.decisions.questions:BestImage",
    "fits-caption": "twinset.generators.decisions.questions:FitsCaption",
    "keep-pair": "twinset.generators.decisions.questions:KeepPair",
    "match": "twinset.generators.decisions.questions:Match",
}
QUESTIONS = Registry[ReviewQuestion]("review question", ReviewQuestion, __name__, "twinset.questions")
NONE = "none"


def question_of(name: str) -> ReviewQuestion:
    """The question of a name; raises `UnknownKind`."""
    return QUESTIONS.find(name)()


class BestImage(ReviewQuestion):
    """One text, the caption, and k images of it: which shows it best, or none (BiVLC, section 3.1, step 3)."""

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


PHOTO, GENERATED, BOTH = "photo", "generated", "both"


class FitsCaption(ReviewQuestion):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption.

    An instance is ambiguous unless the photo is chosen (BiVLC, section 3.1, step 4).
    """

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


KEEP, DROP = "keep", "drop"


class KeepPair(ReviewQuestion):
    """Two texts and two images: caption 0 belongs to image 0, caption 1 to image 1."""

    name = "keep-pair"
    title = "Is this a good pair?"
    instructions = (
        "Each caption must be true of the image below it, and wrong of the other image.",
        "The difference must be visible in the images, without knowing what came before or after.",
        "If anything is wrong, drop the pair and say why.",
    )
    examples = (
        Example(
            "“She stirs the pot” / “She lifts the lid”, and both images show the lid on the pot", "drop", "the same"
        ),
        Example("“A red cup” / “A blue cup”, one image of each", "keep", "each caption is true of its image alone"),
    )
    shuffled = False
    drops: ClassVar[Mapping[str, str]] = {DROP: "screened-out"}
    reasons: ClassVar[Mapping[str, str]] = {
        "wrong-caption": "a caption is not true of its image",
        "fits-both": "a caption is true of both images",
        "not-visible": "the difference cannot be seen",
        "bad-image": "an image is blurred, dark or broken",
        "offensive": "should not be shown to anyone",
        "other": "something else",
    }

    def layout(self, task: TaskCandidate) -> Layout:
        return Layout((0, 1), (0, 1), (Option(KEEP, "Keep"),), (Option(DROP, "Drop"),))


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
