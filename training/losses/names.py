"""Objectives and regularisers by name; what is here, and in installed packages, is imported without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Literal

from twinset.manifests.doors import Registry

Role = Literal["image", "text", "negative_image", "negative_text"]


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective, as settings see it.

    place: ``MODULE:CLASS`` of an `InfoNCE`, imported when a run begins. roles: what it compares of an example.
    """

    place: str
    roles: tuple[Role, ...]

    @property
    def negatives(self) -> bool:
        """Whether it reads negatives."""
        return any(role.startswith("negative_") for role in self.roles)

    def open(self) -> Any:
        """The objective."""
        return EntryPoint("", self.place, "").load()()


@dataclass(frozen=True, slots=True)
class Regulariser:
    """A regulariser, as settings see it.

    place: ``MODULE:CLASS`` of a `Loss`, imported when a run begins. weight: in the total loss, unless another is set:
    that of its source. options: of its class.
    """

    place: str
    weight: float
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, **options: Any) -> Any:
        """The regulariser; options: beside its own."""
        return EntryPoint("", self.place, "").load()(**self.options, **options)


_HERE = "twinset.training.losses"
INFONCE = Objective(f"{_HERE}.objectives:InfoNCE", ("image", "text"))
NEGATIVE_TEXTS = Objective(f"{_HERE}.objectives:NegativeTexts", ("image", "text", "negative_text"))
NEGATIVE_PAIRS = Objective(f"{_HERE}.objectives:NegativePairs", ("image", "text", "negative_image", "negative_text"))
# Weights: beta of EqSim's released command, lambda of CyCLIP. HardNeg is there a loss of its own, added as it is.
EQSIM_V1 = Regulariser(f"{_HERE}.eqsim:EqSim", 0.5, {"form": "v1"})
EQSIM_V2 = Regulariser(f"{_HERE}.eqsim:EqSim", 0.5, {"form": "v2"})
EQSIM_HYBRID = Regulariser(f"{_HERE}.eqsim:EqSim", 0.5, {"form": "hybrid"})
EQSIM_V1_RELEASED = Regulariser(f"{_HERE}.eqsim:EqSimReleased", 0.5, {"form": "v1"})
EQSIM_V2_RELEASED = Regulariser(f"{_HERE}.eqsim:EqSimReleased", 0.5, {"form": "v2"})
EQSIM_HYBRID_RELEASED = Regulariser(f"{_HERE}.eqsim:EqSimReleased", 0.5, {"form": "hybrid"})
HARDNEG = Regulariser(f"{_HERE}.regularisers:HardNegatives", 1.0)
CYCLIP = Regulariser(f"{_HERE}.regularisers:CyCLIP", 0.25, {"within": True})
CYCLIP_RELEASED = Regulariser(f"{_HERE}.regularisers:CyCLIP", 0.25, {"within": False})

OBJECTIVE_KINDS = {
    "infonce": f"{__name__}:INFONCE",
    "negative-texts": f"{__name__}:NEGATIVE_TEXTS",
    "negclip": f"{__name__}:NEGATIVE_TEXTS",  # the same formula: see `NegativeTexts`
    "negative-pairs": f"{__name__}:NEGATIVE_PAIRS",
}
REGULARISER_KINDS = {
    "eqsim-v1": f"{__name__}:EQSIM_V1",
    "eqsim-v2": f"{__name__}:EQSIM_V2",
    "eqsim-hybrid": f"{__name__}:EQSIM_HYBRID",
    "eqsim-v1-released": f"{__name__}:EQSIM_V1_RELEASED",
    "eqsim-v2-released": f"{__name__}:EQSIM_V2_RELEASED",
    "eqsim-hybrid-released": f"{__name__}:EQSIM_HYBRID_RELEASED",
    "hardneg": f"{__name__}:HARDNEG",
    "cyclip": f"{__name__}:CYCLIP",
    "cyclip-released": f"{__name__}:CYCLIP_RELEASED",
}
OBJECTIVES = Registry[Objective](
    "objective", Objective, f"{__name__}:OBJECTIVE_KINDS", "twinset.objectives", objects=True
)
REGULARISERS = Registry[Regulariser](
    "regulariser", Regulariser, f"{__name__}:REGULARISER_KINDS", "twinset.regularisers", objects=True
)
#: The objective that reads no negatives.
WITHOUT_NEGATIVES = "infonce"

#: Of fusion encoders (EqBen C): neighbours whose texts are scored, negatives of a step, those of them that are hard.
NEIGHBOURS, NEGATIVES, HARD = 128, 15, 8
#: α of EqSim's released command; the paper chooses from 0, 0.04 and 0.1 (EqBen C).
MARGIN = 0.1


def packages(objective: str, regulariser: str | None) -> dict[str, str]:
    """Names and versions of the packages that brought the losses of a run, by loss; none for twinset's own."""
    found = {objective: OBJECTIVES.distribution(objective)}
    if regulariser is not None:
        found[regulariser] = REGULARISERS.distribution(regulariser)
    return {name: package for name, package in found.items() if package}
