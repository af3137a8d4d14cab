"""What a form of file is: how answers become one, and what a row of one says."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.pictures import Picture
from twinset.review.tasks import ReviewTask

#: All tasks, each with its answers, also those without one; and what gives an image of a task.
Answered = Sequence[tuple[ReviewTask, Sequence[Answer]]]
Show = Callable[[ReviewTask, int], Picture]
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
