"""The images of tasks, as the page serves them."""

from dataclasses import dataclass
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it is stored. media_type: such as ``image/png``."""

    content: bytes
    media_type: str


def picture_of_stage(stage: FinishedStage, name: str, tar: str, sha256: str) -> Picture:
    """An image of an earlier stage.

    Args:
        name: key of its sample; with ``/ROLE`` where that has several, as in ``/image1``.
        tar: that holds the sample.
        sha256: that it must have.

    Raises:
        BrokenTar: it is absent, or another one.
    """
    key, _, role = name.partition("/")
    stored = stage.samples([(tar, key)])[key]
    role = role or "image"
    stage.check_images(tar, stored, {role: sha256})
    return Picture(stored.images[role], _media_type(stored.extension))


def photo_of(folder: ImageFolder | None, name: str) -> Picture:
    """A photo of a folder; raises `WrongUse` when it is absent."""
    stored = None if folder is None else folder.find(name)
    if stored is None:
        if folder is None:
            raise WrongUse(f"any folder: holds no photo {name}; add it")
        raise WrongUse(folder.absent(name, f"{folder.root}: holds no photo {name}; add it"))
    return Picture(stored.read(), _media_type(Path(stored.name).suffix.lstrip(".").lower()))


def _media_type(suffix: str) -> str:
    return f"image/{'jpeg' if suffix == 'jpg' else suffix}"
