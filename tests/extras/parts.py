"""An image editor and an answerer of questions of another distribution, which need no network."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np

from tests.made_recipe import write_package
from twinset.contracts.kinds.samples import Rejected
from twinset.models.image_engine import Drawn
from twinset.models.language_models.answers import Answer, Request
from twinset.models.language_models.settings import LanguageModelSettings
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor, ImageEditorSettings


class FilledMasks(ImageEditorSettings):
    """Masks filled with one colour, which depends on the phrase."""

    kind: Literal["mylab-fill"]
    licence: str = "CC0-1.0"

    title = "filled masks"
    masked = True

    def open(self) -> "Filler":
        return Filler()


class Filler(ImageEditor):
    """As `FilledMasks`."""

    version = 1

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        for edit in edits:
            colour = np.random.default_rng([*edit.phrase.encode()]).integers(0, 200, 3)
            mask = edit.mask if edit.mask is not None else np.ones(edit.pixels.shape[:2], np.bool_)
            pixels = np.where(mask[..., None], colour, edit.pixels).astype(np.uint8)
            yield Drawn(edit.key, pixels, {"colour": colour.tolist()})


class NothingRed(LanguageModelSettings):
    """Says yes unless it is asked about red."""

    kind: Literal["mylab-nothing-red"]

    sees = True
    worker = f"{__name__}:Answerer"


class Answerer:
    """As `NothingRed`."""

    micro_batch, threads = 8, 1

    def __init__(self, settings: NothingRed) -> None:
        pass

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(probability=float("red" not in request.text)) for request in requests]

    def device(self) -> None:
        return None

    def weights(self) -> Mapping[str, str]:
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        return self


def install(folder: Path) -> None:
    """Write a folder for PYTHONPATH in which a package brings both; it needs the checkout on that path too."""
    points = {
        "twinset.image_editors": {"mylab-fill": f"{__name__}:FilledMasks"},
        "twinset.language_models": {"mylab-nothing-red": f"{__name__}:NothingRed"},
    }
    write_package(folder, "mylab-fill", points, "0.1.0")
