"""What the reasons mean that candidates of a stage are rejected, or records left out for."""

from __future__ import annotations

from collections.abc import Mapping

from manifests.recipe import Subset
from shards.contracts import ENGINE_REASONS


def meanings(subset: Subset) -> Mapping[str, str]:
    """One line for each reason that its source and filters have."""
    found = {**ENGINE_REASONS, **subset.source.reasons}
    for chosen in subset.filters:
        found |= chosen.reasons
    return found
