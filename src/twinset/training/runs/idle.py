"""Parts of a loss that train nothing: their active fraction, the share of hinges above the margin, stays 0."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

#: Steps running at 0; all of a shorter run.
PATIENCE = 100
_PREFIX = "active_"


class IdleParts:
    """Which active fractions were 0 for `PATIENCE` steps running: name → the step at which this was so first.

    steps: of the whole run.
    """

    def __init__(self, steps: int) -> None:
        self.found: dict[str, int] = {}
        self._patience = min(PATIENCE, steps)
        self._zeros = Counter[str]()

    def add(self, row: Mapping[str, Any]) -> str:
        """Count a row of the history; returns a message where it makes parts idle, else nothing."""
        new = []
        for name in (name for name in row if name.startswith(_PREFIX)):
            self._zeros[name] = 0 if row[name] else self._zeros[name] + 1
            if self._zeros[name] == self._patience and name not in self.found:
                self.found[name] = row["step"]
                new.append(name)
        return said_of(dict.fromkeys(new, row["step"]), self._patience)


def said_of(found: Mapping[str, int], patience: int = PATIENCE) -> str:
    """What `IdleParts` found, in words; empty where there is nothing."""
    if not found:
        return ""
    names = ", ".join(f"{name} (step {step:,})" for name, step in found.items())
    return (
        f"{names}: 0 for {patience} steps running. Nothing is above the margin, so that this part of the regulariser "
        "has no gradient; choose a smaller --margin (of v1: --margin-v1), or another regulariser"
    )
