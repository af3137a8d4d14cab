"""What flows from shards into a training step: the place of data and of an image, an example, a batch."""

import re
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
    """An image's bytes. tar: relative to the dataset; sha256: its first 16 hexadecimal digits."""

    tar: str
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Example:
    """One example, without its pixels.

    key: of the sample; the two examples of a pair are ``KEY-0`` and ``KEY-1``, as `export --format openclip` has them.
    group: of the sample (a video, a scene), with its subset. images: by role, image and
    negative_image of pairs, reference, target and distractor of triplets; texts: text and negative_text, or condition.
    Negatives and distractors are there only if the dataset has them.
    where: dataset, tar and key, for messages. dataset: root of `Place.tar`.
    copy: 0, or the number of the repetition in a mixture that repeats its dataset.
    """

    key: str
    group: str
    images: Mapping[str, Place]
    texts: Mapping[str, str]
    where: str
    dataset: str
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """What a step reads. step, epoch: from 0. left_out: where and why, of examples that could not be read."""

    step: int
    epoch: int
    keys: Sequence[str]
    left_out: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)


MOST_COPIES = 1000
TARS = "tars:"  # begins the place of WebDataset tars that others wrote


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A folder or URL, "" or one of its subsets, and how often it is repeated; or a pattern of tars of others."""

    root: str
    subset: str = ""
    copies: int = 1
    pattern: str = ""


def data_place(text: str) -> DataPlace:
    """Read ``DIR``, ``DIR:SUBSET``, ``s3://bucket/prefix:SUBSET*2`` or ``tars:DIR/{000..331}.tar``. Raises `WrongUse`:
    no folder is named, or repetitions are not from 1 to `MOST_COPIES`.
    """
    place, copies, of_tars = text, 1, text.startswith(TARS)
    if found := re.fullmatch(r"(.*)\*([0-9]+)" if of_tars else r"(.*)\*([^*/]*)", text, re.DOTALL):
        place, number = found.groups()
        if not re.fullmatch(r"[0-9]{1,4}", number) or not 1 <= int(number) <= MOST_COPIES:
            raise WrongUse(f"{text}: {number!r} is not how often to repeat it; write a number from 1 to {MOST_COPIES}")
        copies = int(number)
    if of_tars and place.strip() != TARS:
        return DataPlace(place, "", copies, place.removeprefix(TARS))
    root, _, subset = place.rpartition(":")
    # A folder's own name may hold a colon, and so does every URL.
    if not root or not SUBSET_NAME.fullmatch(subset) or ("://" not in place and Path(place).exists()):
        root, subset = place, ""
    if not root:
        raise WrongUse(f"{text!r} names no data; write DIR, DIR:SUBSET or a URL such as s3://bucket/prefix")
    return DataPlace(root, subset, copies)
