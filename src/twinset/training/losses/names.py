"""Objectives and regularisers by name; what is here, and in installed packages, is imported without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Literal

from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse

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
    that of its source. settings: options of the class that a run may set (`RegularisedSettings`), with their defaults.
    fusion: the same on scores of a matching head, a `FusionLoss`; None where there is none.
    """

    place: str
    weight: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    fusion: "Regulariser | None" = None

    def open(self, **options: Any) -> Any:
        """The regulariser; options: where they differ from the defaults."""
        return EntryPoint("", self.place, "").load()(**{**self.settings, **options})


#: The pairs of EqSim's two forms of equivariance, and how it is computed: as the paper writes it or as it was released.
V1 = Literal["all", "distant", "none"]
V2 = Literal["all", "close", "none"]
Form = Literal["paper", "released"]
#: α of v2 and α₁ of v1 in EqSim's released command; the paper chooses one α from 0, 0.04 and 0.1 (EqBen C).
MARGIN, MARGIN_V1 = 0.1, 0.0
#: β of EqSim's released command; the paper chooses from 0.2, 0.5 and 1.
WEIGHT = 0.5
#: k of the closest texts of an image, and images of a text (C); negatives sampled per row: ``sample_num`` as released.
CLOSE, SAMPLES = 8, 4
#: Of fusion encoders (EqBen C): images whose texts are scored, negatives of a step, those of them that are hard.
NEIGHBOURS, NEGATIVES, HARD = 128, 15, 8
#: Instead of the place of an image or example, where there are fewer than others have.
ABSENT = -1

_HERE = "twinset.training.losses"
INFONCE = Objective(f"{_HERE}.objectives:InfoNCE", ("image", "text"))
NEGATIVE_TEXTS = Objective(f"{_HERE}.objectives:NegativeTexts", ("image", "text", "negative_text"))
NEGATIVE_PAIRS = Objective(f"{_HERE}.objectives:NegativePairs", ("image", "text", "negative_image", "negative_text"))
#: Of EqBen's Table 6, "EqSim" is v1 on all pairs and v2 on close ones (5.4, A.3).
_SETTINGS = {"v1": "all", "v2": "close", "form": "paper", "margin": MARGIN, "margin_v1": MARGIN_V1}
_FUSION = Regulariser(f"{_HERE}.fusion:FusionEqSim", WEIGHT, _SETTINGS)
EQSIM = Regulariser(f"{_HERE}.eqsim:EqSim", WEIGHT, _SETTINGS, _FUSION)
HARDNEG = Regulariser(f"{_HERE}.sampling:HardNegatives", 1.0)  # in EqSim's code a loss of its own, added as it is

OBJECTIVE_KINDS = {
    "infonce": f"{__name__}:INFONCE",
    "negative-texts": f"{__name__}:NEGATIVE_TEXTS",
    "negclip": f"{__name__}:NEGATIVE_TEXTS",  # the same formula: see `NegativeTexts`
    "negative-pairs": f"{__name__}:NEGATIVE_PAIRS",
}
REGULARISER_KINDS = {"eqsim": f"{__name__}:EQSIM", "hardneg": f"{__name__}:HARDNEG"}
OBJECTIVES = Registry[Objective]("objective", Objective, f"{__name__}:OBJECTIVE_KINDS", "twinset.objectives")
REGULARISERS = Registry[Regulariser](
    "regulariser", Regulariser, f"{__name__}:REGULARISER_KINDS", "twinset.regularisers"
)


def fusion_form(name: str) -> Regulariser:
    """The form of a regulariser on scores of a matching head. Raises `UnknownKind`, or `WrongUse` where it has none."""
    form = REGULARISERS.find(name).fusion
    if form is None:
        raise WrongUse(f"regulariser: {name} has no form for fusion encoders; name another, such as eqsim")
    return form


def packages(objective: str, regulariser: str | None) -> dict[str, str]:
    """Names and versions of the packages that brought the losses of a run, by loss; none for twinset's own."""
    versions = {objective: OBJECTIVES.distribution(objective)}
    if regulariser is not None:
        versions[regulariser] = REGULARISERS.distribution(regulariser)
    return {name: package for name, package in versions.items() if package}
