"""A caption scorer as another package has one."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import SimpleNamespace
from typing import Literal

import numpy as np

from twinset.contracts.references import Reference
from twinset.generators.caption_scores.scorers.scorer import Scored, Scorer, ScorerSettings


class Commas(ScorerSettings):
    """Commas of a text, and half of one."""

    kind: Literal["mylab-commas"]

    score = "commas"
    title = "number of commas"
    unit = "commas"
    reach = 4.0
    reference = Reference("Commas", "", "@misc{commas2020, title = {Commas}}")

    def open(self, device: str) -> Scorer:
        return count_commas


def count_commas(texts: Sequence[str], micro_batch: int) -> Scored:
    return Scored(np.array([text.count(",") + 0.5 for text in texts]), np.zeros(len(texts), np.bool_))


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """As `contracts.doors.installed`, with a package ``mylab 1.2`` that brings the scorer."""
    found = {one.name: one for one in entry_points(group=group)}
    if group == "twinset.caption_scorers":
        found["mylab-commas"] = EntryPoint("mylab-commas", f"{__name__}:Commas", group)
        vars(found["mylab-commas"]).update(dist=SimpleNamespace(name="mylab", version="1.2"))
    return found
