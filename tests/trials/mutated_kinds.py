"""The kinds of inputs that are mutated: how valid ones are made, and what reads them.

A kind is one line in the `KINDS` of a module here: a function that fills an empty folder, and acts on such a folder,
which is the working directory meanwhile. An act returns an exit code, or raises what its function raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.trials import mutated_data, mutated_evaluation, mutated_models, mutated_outs, mutated_parts
from tests.trials.mutated_data import Act, Make


@dataclass(frozen=True)
class Kind:
    """A kind of inputs. files: patterns of those that are mutated; weight: how many cases it has to one of others;
    torch: whether the acts need it, and so a process of their own."""

    name: str
    make: Make
    acts: Mapping[str, Act]
    files: Sequence[str]
    weight: int = 2
    torch: bool = False

    @property
    def place(self) -> str:
        """Its name as a folder."""
        return "".join(one if one.isalnum() else "-" for one in self.name)


_ALL: tuple[Kind, ...] = (
    *(Kind(name, *rest) for name, *rest in mutated_data.KINDS),
    *(Kind(name, *rest) for name, *rest in mutated_evaluation.KINDS),
    *(Kind(name, *rest) for name, *rest in mutated_outs.KINDS),
    *(Kind(name, *rest) for name, *rest in mutated_parts.KINDS),
    *(Kind(name, *rest, torch=True) for name, *rest in mutated_models.KINDS),
)
KINDS = {kind.name: kind for kind in _ALL}
