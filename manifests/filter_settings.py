"""The settings of every filter that a recipe can name, typed; `filters.create` turns them into filters."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from manifests.locations import is_model_folder
from manifests.settings import Settings


class MotionWords(Settings):
    """Drops captions that hold one of ``words`` as a whole word: a still frame cannot show motion (EqBen, B.2).

    words: the paper's five, which it gives as examples, and their other spellings.
    """

    kind: Literal["motion-words"]
    words: tuple[str, ...] = ("up", "upward", "upwards", "down", "downward", "downwards", "toward", "towards")


class EqualCaptions(Settings):
    """Drops pairs whose captions all say the same; leads with the first two that differ."""

    kind: Literal["equal-captions"]


class Faces(Settings):
    """Drops frames that show a human face (EqBen, B.3).

    model: ``hog`` on the CPU, ``cnn`` on a GPU; mode ``exact`` gives face_recognition's own verdicts, ``fast`` is
    several times faster and disagrees with it on a few frames.
    """

    kind: Literal["faces"]
    model: Literal["hog", "cnn"] = "hog"
    mode: Literal["exact", "fast"] = "exact"

    @model_validator(mode="after")
    def _fast_is_hog(self) -> Faces:
        if self.model == "cnn" and self.mode == "fast":
            raise ValueError("mode 'fast' belongs to model 'hog'; with model 'cnn' write mode: exact")
        return self


class NearIdentical(Settings):
    """Drops pairs whose two frames hardly differ.

    threshold: least mean absolute difference of the two frames, in grey levels (0-255), at 64 x 64 pixels.
    """

    kind: Literal["near-identical"]
    threshold: float = Field(default=2.0, ge=0, le=255)


class Blank(Settings):
    """Drops frames that are black, white or of one colour.

    contrast: least standard deviation, in grey levels (0-255).
    """

    kind: Literal["blank"]
    contrast: float = Field(default=4.0, ge=0, le=128)


class SceneCut(Settings):
    """Drops pairs whose twins come from two different scenes.

    similarity: least intersection of the two hue-saturation histograms (0 none, 1 equal).
    """

    kind: Literal["scene-cut"]
    similarity: float = Field(default=0.3, ge=0, le=1)


class DirectionalSimilarity(Settings):
    """Scores how well the change of the images follows that of the captions, by a CLIP model; drops nothing.

    model: an id of the Hugging Face hub whose files are in the local cache, or a folder: a path that is absolute or
    begins with ``.`` or ``~``. device: ``gpu`` is the first CUDA device. threads: torch's. micro_batch: pairs a pass.
    """

    kind: Literal["directional-similarity"]
    model: str = Field(min_length=1)
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=1, le=1024)
    micro_batch: int = Field(default=1, ge=1, le=1024)

    execution: ClassVar[tuple[str, ...]] = ("device", "threads", "micro_batch")

    @property
    def locations(self) -> tuple[str, ...]:
        """Settings that hold a path of this machine: a model's name is part of what is made, a folder is not."""
        return ("model",) if is_model_folder(self.model) else ()


#: Filters that judge each image by itself, and so samples of every kind.
OF_ONE_IMAGE = ("faces", "blank")

Filter = Annotated[
    MotionWords | EqualCaptions | Faces | NearIdentical | Blank | SceneCut | DirectionalSimilarity,
    Field(discriminator="kind"),
]
