"""Whether a pair of images and captions is fit for a benchmark, and if not, why."""

from collections.abc import Mapping
from typing import ClassVar

from twinset.generators.decisions.question import Example, Layout, Option, ReviewQuestion
from twinset.generators.decisions.task import TaskCandidate

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
