"""What the reasons mean that candidates of a stage are rejected, or records left out for."""

from __future__ import annotations

from collections.abc import Mapping

from manifests.recipe import Subset

#: Reasons of the engine, which any source can meet.
_ANY = {
    "duplicate": "another sample has the same images and captions; that of the smallest source identity stays",
    "too-large": "a side of an image is longer than image files hold",
}


def meanings(subset: Subset) -> Mapping[str, str]:
    """One line for each reason that its source and filters have."""
    found = {**_ANY, **subset.source.reasons}
    for chosen in subset.filters:
        found |= chosen.reasons
    return found
