"""The images of tasks, as the page serves them."""

from dataclasses import dataclass

from twinset.shards.finished_stage import FinishedStage


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
    stored, role = stage.samples([(tar, key)])[key], role or "image"
    stage.check_images(tar, stored, {role: sha256})
    return Picture(stored.images[role], media_type_of(stored.extension))


def media_type_of(suffix: str) -> str:
    """The media type of an image by its suffix, such as ``jpg``."""
    return f"image/{'jpeg' if suffix == 'jpg' else suffix}"
