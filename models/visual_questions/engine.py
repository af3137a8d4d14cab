"""What answers questions about images, and the protocol that all engines keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twinset.models.engines import Engine


@dataclass(frozen=True, slots=True)
class Inquiry:
    """An image and what is asked of it.

    key: of the image, for messages. image: encoded as JPEG, PNG or WebP. media_type: such as ``image/jpeg``.
    questions: with the answer yes or no, each once.
    """

    key: str
    image: bytes
    media_type: str
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why an inquiry has no answers. reason: one of the settings' `reasons`. detail: for people."""

    reason: str
    detail: str


#: Probabilities of yes, 0 to 1, in the order of the questions; or why there are none.
Answers = list[float] | Unanswered


class VisualQuestionAnswerer(Engine, Protocol):
    """A model at work that answers yes/no questions about images. micro_batch: questions; for servers, images."""

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """What is answered to each inquiry, in order.

        Raises:
            BrokenTar: an image cannot be read.
            BuildFailed: the model cannot be used now; running the same command again resumes.
            OutOfMemory: a pass does not fit into memory.
        """
