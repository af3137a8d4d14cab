"""Whole groups set aside from training: what shares a video, a photo or a scene stays on one side."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinset.manifests.canonical import canonical_json
from twinset.manifests.errors import WrongUse


def held_out(groups: Sequence[str], share: float, seed: int, what: str = "validation") -> NDArray[np.bool_]:
    """Which examples are set aside.

    Groups are ordered by a hash of their name and the first of them are taken: neither the order of the examples nor
    their number in a group matters.

    Args:
        groups: of each example.
        share: of the groups, between 0 and 1; rounded up, and at least one stays.
        seed, what: two calls with others take other groups.

    Raises:
        WrongUse: there is only one group.
    """
    names = sorted(set(groups), key=lambda group: (_hash(seed, what, group), group))
    if len(names) < 2:
        raise WrongUse(f"{len(names)} group of examples cannot be split for {what}; train on data with more groups")
    chosen = set(names[: min(len(names) - 1, math.ceil(share * len(names)))])
    return np.fromiter((group in chosen for group in groups), np.bool_, len(groups))


def _hash(*parts: str | int) -> bytes:
    return hashlib.blake2b(canonical_json(list(parts)), digest_size=16).digest()
