"""What flows from shards into a training step: the place of data and of an image, an example, what a step reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import SUBSET_NAME

Task = Literal["pairs", "triplets"]
Twins = Literal["both", "first"]

#: Where an example lies and why it cannot be read, by its number.
Broken = dict[int, tuple[str, str]]
#: Texts to tokens, (n, L) int64.
Tokenize = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True)
class Place:
    """An image's bytes. tar: relative to the dataset; sha256: its first 16 digits, "" of tars of others."""

    tar: str
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Example:
    """One example, without its pixels: a row of the table of an `ExampleSet`.

    key: of the sample; the two examples of a pair are ``KEY-0`` and ``KEY-1``. group: of the sample (a video, a scene),
    with its subset; of tars of others the tar. images, texts: by role, those that there are: image, negative_image,
    text and negative_text of pairs; reference, target, distractor and condition of triplets. dataset: root of the tars.
    """

    key: str
    group: str
    images: Mapping[str, Place]
    texts: Mapping[str, str]
    dataset: str

    @property
    def where(self) -> str:
        """Dataset, tar of the first image, and key, for messages."""
        return f"{self.dataset}/{next(iter(self.images.values())).tar}: {self.key}"


@dataclass(frozen=True, slots=True)
class Read:
    """What a step reads.

    step, epoch: from 0. keys: of the examples. left_out: where and why, of examples that could not be read.
    """

    step: int
    epoch: int
    keys: Sequence[str]
    left_out: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)


TARS = "tars:"  # begins the place of WebDataset tars that others wrote


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A folder or URL, "" or one of its subsets; or a pattern of tars of others."""

    root: str
    subset: str = ""
    pattern: str = ""


def data_place(text: str) -> DataPlace:
    """Read ``DIR``, ``DIR:SUBSET``, ``s3://bucket/prefix:SUBSET`` or ``tars:DIR/{000..331}.tar``. Raises `WrongUse`: no
    folder is named.
    """
    if text.startswith(TARS) and text.strip() != TARS:
        return DataPlace(text, pattern=text.removeprefix(TARS))
    root, _, subset = text.rpartition(":")
    # A folder's own name may hold a colon, and so does every URL.
    if not root or not SUBSET_NAME.fullmatch(subset) or ("://" not in text and Path(text).exists()):
        root, subset = text, ""
    if not root:
        raise WrongUse(f"{text!r} names no data; write DIR, DIR:SUBSET or a URL such as s3://bucket/prefix")
    return DataPlace(root, subset)
