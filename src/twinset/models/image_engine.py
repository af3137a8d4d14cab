"""What every text-to-image engine is: its settings, what it is asked for, and what it gives (BiVLC, section 3.2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import SerializeAsAny

from twinset.contracts.doors import Registry
from twinset.contracts.kinds.samples import Json, MediaFile, Pixels, Rejected
from twinset.models.engines import Engine, EngineSettings


@dataclass(frozen=True, slots=True)
class Request:
    """One image that is asked for.

    key: of the candidate, which a `Rejected` repeats. caption: what the image must show. prompt: the caption as a
    text-to-image model is given it, with its suffix; engines that parse read the caption. seed: of this image; what
    two requests of one seed have in common looks alike, as far as the engine can.
    """

    key: str
    caption: str
    prompt: str
    seed: int


@dataclass(eq=False, slots=True)
class Drawn:
    """One image.

    pixels: (height, width, 3) uint8 RGB. provenance: how it was drawn; one engine gives the same keys for every image.
    sources: files that it was made with, such as those of a network; none for what is modelled.
    """

    key: str
    pixels: Pixels
    provenance: Mapping[str, Json]
    sources: tuple[MediaFile, ...] = ()


class ImageGenerator(Engine):
    """An engine that draws, with its version.

    An image depends on its request and on the engine's settings, not on what was drawn before it.
    """

    @abstractmethod
    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        """One result a request, in order. The k images of one prompt come in succession: its text is encoded once.
        Raises `OutOfMemory`: A pass of the network does not fit (`contracts.parts.OutOfMemory`).
        """


class ImageEngineSettings(EngineSettings):
    """Settings of a text-to-image engine, light to import.

    Subclasses set ``kind`` as a `Literal` with the engine's name, and `reasons`. title: the engine as a card names it.
    licence: of what it draws, and of what is seen in it.
    """

    licence: str

    title: ClassVar[str] = ""

    def notes(self) -> str:
        """A Markdown list for the card: what no count tells, and what is not as in the paper; empty for nothing."""
        return ""


KINDS = {
    "diffusers": "twinset.models.diffusion.settings:DiffusersImages",
    "images-server": "twinset.models.images_server.settings:ServedImages",
}
IMAGE_ENGINES = Registry[type[ImageEngineSettings]](
    "image engine", ImageEngineSettings, __name__, "twinset.image_engines"
)
ImageEngine = Annotated[SerializeAsAny[ImageEngineSettings], IMAGE_ENGINES]
