"""What card and page say of a run, in addition to its settings, data and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class About:
    """Words about a kind of run.

    what: a sentence without its full stop. model: how ``--model`` names the best weights, OUT being the folder.
    best_by: figure of the validation that they are chosen by. figures: what the figures are. recipe: whose settings the
    defaults are; published: these settings.
    """

    what: str
    model: str
    best_by: str
    figures: str
    recipe: str
    published: Mapping[str, Any]
