"""What a place of training data is written as: ``DIR``, ``DIR:SUBSET``, ``s3://bucket/prefix:SUBSET*2``."""

import re
from dataclasses import dataclass
from pathlib import Path

from twinset.manifests.errors import WrongUse
from twinset.manifests.recipe import SUBSET_NAME

MOST_COPIES = 1000


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A folder or URL, "" or one of its subsets, and how often it is repeated."""

    root: str
    subset: str = ""
    copies: int = 1


def data_place(text: str) -> DataPlace:
    """Read a place. Raises `WrongUse`: no folder is named, or repetitions are not from 1 to `MOST_COPIES`."""
    place, copies = text, 1
    if found := re.fullmatch(r"(.*)\*([^*/]*)", text, re.DOTALL):
        place, number = found.groups()
        if not re.fullmatch(r"[0-9]{1,4}", number) or not 1 <= int(number) <= MOST_COPIES:
            raise WrongUse(f"{text}: {number!r} is not how often to repeat it; write a number from 1 to {MOST_COPIES}")
        copies = int(number)
    root, _, subset = place.rpartition(":")
    # A folder's own name may hold a colon, and so does every URL.
    if not root or not SUBSET_NAME.fullmatch(subset) or ("://" not in place and Path(place).exists()):
        root, subset = place, ""
    if not root:
        raise WrongUse(f"{text!r} names no data; write DIR, DIR:SUBSET or a URL such as s3://bucket/prefix")
    return DataPlace(root, subset, copies)
