"""Opening losses by name, and the sum of an objective and a regulariser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from twinset.manifests.errors import WrongUse
from twinset.training.losses.cyclip import CyCLIP
from twinset.training.losses.eqsim import EqSim
from twinset.training.losses.eqsim_released import EqSimReleased
from twinset.training.losses.features import Features, Loss
from twinset.training.losses.hard_negatives import HardNegatives
from twinset.training.losses.names import ObjectiveName, RegulariserName
from twinset.training.losses.objectives import InfoNCE, NegativePairs, NegativeTexts

#: negclip has the formula of negative-texts: see `NegativeTexts`.
OBJECTIVES: dict[ObjectiveName, type[InfoNCE]] = {
    "infonce": InfoNCE,
    "negative-texts": NegativeTexts,
    "negclip": NegativeTexts,
    "negative-pairs": NegativePairs,
}
REGULARISERS: dict[RegulariserName, tuple[Callable[..., Loss], dict[str, Any]]] = {
    "eqsim-v1": (EqSim, {"form": "v1"}),
    "eqsim-v2": (EqSim, {"form": "v2"}),
    "eqsim-hybrid": (EqSim, {"form": "hybrid"}),
    "eqsim-v1-released": (EqSimReleased, {"form": "v1"}),
    "eqsim-v2-released": (EqSimReleased, {"form": "v2"}),
    "eqsim-hybrid-released": (EqSimReleased, {"form": "hybrid"}),
    "hardneg": (HardNegatives, {}),
    "cyclip": (CyCLIP, {"within": True}),
    "cyclip-released": (CyCLIP, {"within": False}),
}


def open_objective(name: ObjectiveName) -> InfoNCE:
    """A contrastive objective by its name; raises `WrongUse` for an unknown one."""
    if name not in OBJECTIVES:
        raise WrongUse(f"objective {name!r} is unknown; choose from {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]()


def open_regulariser(name: RegulariserName, **options: Any) -> Loss:
    """A regulariser by its name. options: fields of its class, such as ``margin``, that differ from its defaults.

    Raises:
        WrongUse: the name or an option is unknown.
    """
    if name not in REGULARISERS:
        raise WrongUse(f"regulariser {name!r} is unknown; choose from {', '.join(REGULARISERS)}")
    make, fixed = REGULARISERS[name]
    try:
        return make(**fixed, **options)
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


def open_loss(
    objective: ObjectiveName, regulariser: RegulariserName | None = None, weight: float = 0.0, **options: Any
) -> Total:
    """An objective with, or without, a regulariser of some weight and options."""
    return Total(open_objective(objective), regulariser and open_regulariser(regulariser, **options), weight)
