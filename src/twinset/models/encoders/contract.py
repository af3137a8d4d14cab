"""What a scorer is: the four ways in which models compare images with texts, and the machine that runs them.

A scorer inherits from one of these classes, which also declare what is optional, with its default.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.contracts.stage import runtime_class

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = NDArray[np.float32]


class NotApplicable(WrongUse):
    """A model cannot answer what a benchmark asks, such as a plain CLIP a query of an image and a text."""


@dataclass(frozen=True, slots=True)
class Running:
    """How a model runs. It does not change what a model is, but it changes the last bits of what it gives.

    device: the first CUDA device for ``gpu``. batch: images, texts or pairs of a pass. threads: torch's; 0: one a core.
    """

    device: Literal["cpu", "gpu"] = "cpu"
    batch: int = 32
    threads: int = 0

    def __post_init__(self) -> None:
        if self.device not in ("cpu", "gpu") or self.batch < 1 or self.threads < 0:
            raise WrongUse(
                f"device {self.device!r}, batch {self.batch}, threads {self.threads}: must be cpu or gpu, at least 1, "
                "and at least 0, for one a core"
            )

    def start(self) -> str:
        """Set torch's threads; returns its name of the device. Raises `WrongUse` where there is no GPU."""
        import torch

        from twinset.models.device import GPU, check_gpu

        if self.device == "gpu":
            check_gpu("--device")
        torch.set_num_threads(self._threads())
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # scores are float32
        return GPU if self.device == "gpu" else "cpu"

    def device_name(self) -> str:
        """``cpu``, or the GPU's model name."""
        from twinset.models.device import gpu_name

        return "cpu" if self.device == "cpu" else gpu_name("--device")

    def runtime(self) -> str:
        """Digest of what decides the last bits: `contracts.stage.runtime_class`."""
        return runtime_class(self.device_name(), self._threads(), self.batch)

    def _threads(self) -> int:
        return self.threads or len(os.sched_getaffinity(0))


@runtime_checkable
class Scorer(Protocol):
    """A loaded model.

    name: as ``--model`` names it. words: name and version of the prompt that it is asked by, if any. threshold: score
    above which it says that an image and a text match; None for scores that only rank.
    """

    name: str
    words: str = ""
    threshold: float | None = None

    @abstractmethod
    def digest(self) -> str:
        """Of weights, transform, precision and versions of libraries: two of the same digest give the same scores."""

    def too_long(self, texts: Sequence[str]) -> list[str]:
        """Texts of which the model reads only the beginning. Optional."""
        return []


@runtime_checkable
class DualEncoder(Scorer, Protocol):
    """Images and texts are encoded apart from each other; their score is the cosine of their features.

    Features are what the projection gives, float32, shape (n, d), **not** normalised, as the Image+Text baseline and
    probes read them. several: whether an image has several, in (n, k d): the one nearest to a text counts.
    """

    several: bool = False

    @abstractmethod
    def prepare(self, image: Image) -> Floats:
        """An image through the model's own transform, mostly of shape (3, height, width). Threads may call it."""

    @abstractmethod
    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        """Features of images that `prepare` gave, in one pass."""

    @abstractmethod
    def text_features(self, texts: Sequence[str]) -> Floats:
        """Features of texts, in one pass; what is longer than the model reads is cut."""

    def encode_images(self, images: Sequence[Image]) -> Floats:
        """Features of images with norm 1, in one pass."""
        return unit(self.image_features([self.prepare(image) for image in images]))

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Features of texts with norm 1, in one pass."""
        return unit(self.text_features(texts))


@runtime_checkable
class Matcher(Scorer, Protocol):
    """An image and a text are read together: fusion models with an image–text matching head, VQAScore.

    reasons: why a pair may have no score.
    """

    reasons: tuple[str, ...] = ()

    @abstractmethod
    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        """Score of image i with text i, shape (n,); higher is more alike.

        With ``reasons``, shape (n, 2): the score and 0, or NaN and the place of a reason; such pairs are counted.
        """


#: What a model that chooses is asked: which of two captions fits an image (I2T), which of two images a caption (T2I),
#: or which caption belongs to which image (EqBen, 5.5).
Direction = Literal["text", "image", "pairing"]


class Question(NamedTuple):
    """What is shown: one image and two captions, two images and one caption, or two of both, by ``direction``."""

    direction: Direction
    images: tuple[Image, ...]
    captions: tuple[str, ...]


@runtime_checkable
class Chooser(Scorer, Protocol):
    """A model that is shown images and captions, and names those that fit. directions: what it can be asked."""

    directions: tuple[Direction, ...] = ("text",)

    @abstractmethod
    def choose(self, questions: Sequence[Question]) -> list[tuple[int, ...] | str]:
        """For each question the place of the caption or image that it chose, in the order that it is shown them; of a
        pairing the places of the captions of both images; or why it chose none, in a word or two that are counted.
        """


@runtime_checkable
class Composer(Scorer, Protocol):
    """Composed retrieval: an image with a text that modifies it is a query, and an encoder's images are the gallery.

    encoder: of the gallery, of the image, and of the text.
    """

    encoder: DualEncoder

    @abstractmethod
    def compose(self, images: Floats, texts: Floats, words: Sequence[str]) -> Floats:
        """Queries of norm 1, (n, d), from the encoder's features, not normalised, (n, d), and the texts themselves."""


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of models that ``--model KIND:…`` names, an object of the door ``twinset.evaluation_models``.

    open: loads one from the text as it was written, its parts after the kind, and how it runs. form: what is written
    after the colon. parts: at most this number, so that the last one may hold colons. check: raises `WrongUse` from the
    first two arguments of ``open``, as far as names and files tell. prompts: whether ``KIND/PROMPT:…`` names a prompt
    (`evaluation.scorers.prompts`). note: a sentence for reports. about: what it is, where that is not the docstring of
    ``open``.
    """

    open: Callable[[str, Sequence[str], Running], Scorer]
    form: str
    parts: int = 1
    check: Callable[[str, Sequence[str]], object] = lambda name, parts: None
    prompts: bool = False
    note: str = ""
    about: str | None = None


def unit(features: Floats) -> Floats:
    """Features divided by their norm, shape (..., d); zeros stay zeros."""
    # Row by row in float64, so that a feature's norm does not depend on what else is in the array.
    norms = np.sqrt(np.einsum("...d,...d->...", features, features, dtype=np.float64))[..., None]
    divided: Floats = (features / np.maximum(norms, 1e-12)).astype(np.float32)
    return divided


def as_floats(features: Any) -> Floats:
    """What a network gives of a batch, as float32 on the CPU."""
    # transformers 5 wraps features, 4 gives them.
    floats: Floats = getattr(features, "pooler_output", features).float().cpu().numpy()
    return floats
