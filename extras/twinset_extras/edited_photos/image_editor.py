"""What every image editor is: its settings, what it is asked for, and what it gives (VisMin, section 3; Img-Diff)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializeAsAny

from twinset.contracts.doors import Registry
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.models.engines import Engine, EngineSettings
from twinset.models.image_engine import Drawn


@dataclass(eq=False, slots=True)
class Edit:
    """One change of a picture that is asked for.

    key: of the candidate, which a `Rejected` repeats. pixels: (height, width, 3) uint8 RGB. mask: (height, width) bool,
    where the picture may change; None leaves it to the editor. caption: what the picture shows. wanted: a caption of
    what it must show. phrase: what the place of the mask must show, such as ``a red cup``; empty where nothing shall be
    there. instruction: the change in words, for editors that are told what to do. seed: of this edit.
    """

    key: str
    pixels: Pixels
    mask: NDArray[np.bool_] | None
    caption: str
    wanted: str
    phrase: str
    instruction: str
    seed: int


class ImageEditor(Engine):
    """An engine that edits, with its version.

    A result depends on its edit and on the editor's settings, not on what was edited before it.
    """

    @abstractmethod
    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        """One result an edit, in order, of whatever size the editor gives; who asks looks at it.

        Raises `OutOfMemory`: A pass of the network does not fit (`contracts.parts.OutOfMemory`).
        """


class ImageEditorSettings(EngineSettings):
    """Settings of an image editor, light to import.

    Subclasses set ``kind`` as a `Literal` with the editor's name, and `reasons`. title: the editor as a card names it.
    masked: whether it needs a mask. licence: of what it paints.
    """

    licence: str

    title: ClassVar[str] = ""
    masked: ClassVar[bool] = False

    def notes(self) -> str:
        """A Markdown list for the card: what no count tells; empty for nothing."""
        return ""


KINDS = {"diffusers-edit": "twinset_extras.edited_photos.diffusers_edits:DiffusersEdits"}
IMAGE_EDITORS = Registry[type[ImageEditorSettings]](
    "image editor", ImageEditorSettings, __name__, "twinset.image_editors"
)
ImageEditorEngine = Annotated[SerializeAsAny[ImageEditorSettings], IMAGE_EDITORS]
