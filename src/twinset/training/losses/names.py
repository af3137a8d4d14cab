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
    that of its source. options: of its class. settings: options that a run may set (`RegularisedSettings`), with their
    defaults. fusion: the same form on scores of a matching head, a `FusionLoss`; None where there is none.
    """

    place: str
    weight: float
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fusion: "Regulariser | None" = None

    def open(self, **options: Any) -> Any:
        """The regulariser; options: beside its own."""
        return EntryPoint("", self.place, "").load()(**self.options, **{**self.settings, **options})


_HERE = "twinset.training.losses"
INFONCE = Objective(f"{_HERE}.objectives:InfoNCE", ("image", "text"))
NEGATIVE_TEXTS = Objective(f"{_HERE}.objectives:NegativeTexts", ("image", "text", "negative_text"))
NEGATIVE_PAIRS = Objective(f"{_HERE}.objectives:NegativePairs", ("image", "text", "negative_image", "negative_text"))
#: α of v2 and α₁ of v1 in EqSim's released command; the paper chooses one α from 0, 0.04 and 0.1 (EqBen C).
MARGIN, MARGIN_V1 = 0.1, 0.0
#: k of the closest texts of an image, and images of a text (C); negatives sampled per row: ``sample_num`` as released.
CLOSE, SAMPLES = 8, 4
#: β of EqSim's released command; the paper chooses from 0.2, 0.5 and 1.
WEIGHT = 0.5
#: Of fusion encoders (EqBen C): images whose texts are scored, negatives of a step, those of them that are hard.
NEIGHBOURS, NEGATIVES, HARD = 128, 15, 8
#: Instead of the place of an image or example, where there are fewer than others have.
ABSENT = -1
#: The nearest images of an image, one of which NegCLIP has in its batch (Yuksekgonul et al. 2023, section 4).
NEAREST = 3

V1 = Literal["all", "distant"]
V2 = Literal["all", "close"]


def _settings(v1: V1 | None, v2: V2 | None, **others: Any) -> dict[str, Any]:
    """What a form of EqSim reads, with its default; others: settings of which ``close`` is read with a close pair."""
    read = {"margin": v2 is not None, "margin_v1": v1 is not None, "close": v1 == "distant" or v2 == "close"}
    given = {"margin": MARGIN, "margin_v1": MARGIN_V1, **others}
    return {name: value for name, value in given.items() if read.get(name, True)}


def _eqsim(v1: V1 | None, v2: V2 | None) -> Regulariser:
    """EqSim with v1 and v2 on some pairs; None: without."""
    form = {"v1": v1, "v2": v2}
    fusion = Regulariser(f"{_HERE}.fusion:FusionEqSim", WEIGHT, form, _settings(v1, v2, normalise="sigmoid"))
    settings = _settings(v1, v2, close=CLOSE, normalise="softmax")
    return Regulariser(f"{_HERE}.eqsim:EqSim", WEIGHT, form, settings, fusion)


def _released(v1: V1 | None, v2: V2 | None, fusion: Regulariser | None = None) -> Regulariser:
    """The same as released."""
    settings = _settings(v1, v2, close=SAMPLES)
    return Regulariser(f"{_HERE}.eqsim:EqSimReleased", WEIGHT, {"v1": v1, "v2": v2}, settings, fusion)


EQSIM = _eqsim("all", "close")
EQSIM_V1_ALL = _eqsim("all", None)
EQSIM_V2_ALL = _eqsim(None, "all")
EQSIM_V2_CLOSE = _eqsim(None, "close")
EQSIM_FIGURE_4 = _eqsim("distant", "close")
_HARD_ITM = Regulariser(f"{_HERE}.fusion:FusionEqSimReleased", WEIGHT, settings={"margin": MARGIN})
EQSIM_RELEASED = _released("distant", "close", _HARD_ITM)
EQSIM_V1_ALL_RELEASED = _released("all", None)
EQSIM_V2_ALL_RELEASED = _released(None, "all")
EQSIM_V2_CLOSE_RELEASED = _released(None, "close")
# λ of CyCLIP. HardNeg is in EqSim's code a loss of its own, added as it is.
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
    "eqsim": f"{__name__}:EQSIM",
    "eqsim-v1-all": f"{__name__}:EQSIM_V1_ALL",
    "eqsim-v2-all": f"{__name__}:EQSIM_V2_ALL",
    "eqsim-v2-close": f"{__name__}:EQSIM_V2_CLOSE",
    "eqsim-figure-4": f"{__name__}:EQSIM_FIGURE_4",
    "eqsim-released": f"{__name__}:EQSIM_RELEASED",
    "eqsim-v1-all-released": f"{__name__}:EQSIM_V1_ALL_RELEASED",
    "eqsim-v2-all-released": f"{__name__}:EQSIM_V2_ALL_RELEASED",
    "eqsim-v2-close-released": f"{__name__}:EQSIM_V2_CLOSE_RELEASED",
    "hardneg": f"{__name__}:HARDNEG",
    "cyclip": f"{__name__}:CYCLIP",
    "cyclip-released": f"{__name__}:CYCLIP_RELEASED",
}
OBJECTIVES = Registry[Objective]("objective", Objective, f"{__name__}:OBJECTIVE_KINDS", "twinset.objectives")
REGULARISERS = Registry[Regulariser](
    "regulariser", Regulariser, f"{__name__}:REGULARISER_KINDS", "twinset.regularisers"
)
#: The objective that reads no negatives.
WITHOUT_NEGATIVES = "infonce"


def fusion_regularisers() -> list[str]:
    """Regularisers that a fusion encoder may have; what an installed package brings is listed unopened."""
    own = REGULARISERS.own()
    return [name for name in REGULARISERS.kinds() if name not in own or REGULARISERS.find(name).fusion is not None]


def fusion_form(name: str) -> Regulariser:
    """The form of a regulariser on scores of a matching head. Raises `UnknownKind`, or `WrongUse` where it has none."""
    found = REGULARISERS.find(name).fusion
    if found is None:
        known = ", ".join(fusion_regularisers())
        raise WrongUse(f"regulariser: {name} has no form for fusion encoders; name one of {known}")
    return found


def packages(objective: str, regulariser: str | None) -> dict[str, str]:
    """Names and versions of the packages that brought the losses of a run, by loss; none for twinset's own."""
    found = {objective: OBJECTIVES.distribution(objective)}
    if regulariser is not None:
        found[regulariser] = REGULARISERS.distribution(regulariser)
    return {name: package for name, package in found.items() if package}
