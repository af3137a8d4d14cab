"""Opening losses by name, and the sum of an objective and a regulariser."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from twinset.manifests.errors import WrongUse
from twinset.training.losses.features import Features, Loss
from twinset.training.losses.names import OBJECTIVES, REGULARISERS
from twinset.training.losses.objectives import InfoNCE


def open_objective(name: str) -> InfoNCE:
    """A contrastive objective by its name; raises `UnknownKind`, or `WrongUse` where it is not an `InfoNCE`."""
    found = OBJECTIVES.get(name).open()
    if not isinstance(found, InfoNCE):
        raise WrongUse(
            f"{OBJECTIVES.named(name)}: {type(found).__name__} is not a subclass of InfoNCE; correct its package"
        )
    return found


def open_regulariser(name: str, **options: Any) -> Loss:
    """A regulariser by its name. options: fields of its class, such as ``margin``, that differ from its defaults.

    Raises:
        UnknownKind: the name is unknown.
        WrongUse: an option is.
    """
    kind = REGULARISERS.get(name)
    try:
        return cast(Loss, kind.open(**options))
    except TypeError as error:
        raise WrongUse(f"regulariser {name}: {error}; see docs/training.md for its options") from error


@dataclass(frozen=True, slots=True)
class Total:
    """objective + weight · regulariser, where the regulariser sees the matched pairs that the objective compares.

    With negative-pairs these are 2n pairs, twins among them; otherwise n. A weight of 0 is the control: the regulariser
    is computed, sampled and logged, and the gradient is the objective's.
    """

    objective: InfoNCE
    regulariser: Loss | None = None
    weight: float = 0.0

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        loss, logged = self.objective(features, scale)
        if self.regulariser is None:
            return loss, logged
        extra, more = self.regulariser(self.objective.matched(features), scale, generator)
        logged |= {"objective": float(loss.detach()), "regulariser": float(extra.detach()), **more}
        return loss + self.weight * extra, logged


def open_loss(objective: str, regulariser: str | None = None, weight: float = 0.0, **options: Any) -> Total:
    """An objective with, or without, a regulariser of some weight and options."""
    extra = None if regulariser is None else open_regulariser(regulariser, **options)
    return Total(open_objective(objective), extra, weight)
