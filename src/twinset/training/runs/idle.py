"""Parts of a loss that train nothing: their active fraction, the share of hinges above the margin, stays 0."""

from collections.abc import Mapping, Sequence
from typing import Any

PATIENCE = 100  # steps after which a run says so; all of a shorter one


def idle_parts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The active fractions that are 0 in all rows of a history."""
    names = [name for name in rows[0] if name.startswith("active_")] if rows else []
    return [name for name in names if not any(row[name] for row in rows)]


def in_words(names: Sequence[str]) -> str:
    """What `idle_parts` gives, for people; empty where there is nothing."""
    if not names:
        return ""
    return (
        f"{', '.join(names)}: 0 in all steps. Nothing is above the margin, so that this part of the regulariser has no "
        "gradient; choose a smaller --margin (of v1: --margin-v1), or another regulariser"
    )
