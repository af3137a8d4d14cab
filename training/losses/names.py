"""Names of objectives and regularisers, for settings and help texts; importing them does not import torch."""

from typing import Literal, get_args

ObjectiveName = Literal["infonce", "negative-texts", "negclip", "negative-pairs"]
RegulariserName = Literal[
    "eqsim-v1",
    "eqsim-v2",
    "eqsim-hybrid",
    "eqsim-v1-released",
    "eqsim-v2-released",
    "eqsim-hybrid-released",
    "hardneg",
    "cyclip",
    "cyclip-released",
]
Role = Literal["image", "text", "negative_image", "negative_text"]

OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)
REGULARISERS: tuple[RegulariserName, ...] = get_args(RegulariserName)

#: The objective that reads no negatives.
WITHOUT_NEGATIVES: ObjectiveName = "infonce"
#: What of an example each objective compares: the roles that training must read.
ROLES: dict[ObjectiveName, tuple[Role, ...]] = {
    "infonce": ("image", "text"),
    "negative-texts": ("image", "text", "negative_text"),
    "negclip": ("image", "text", "negative_text"),
    "negative-pairs": ("image", "text", "negative_image", "negative_text"),
}

#: EqSim of fusion encoders, on sampled negatives; and how many of them (EqBen C): neighbours whose texts are scored,
#: negatives of a step, those of them that are hard.
FUSION_REGULARISERS = ("eqsim", "eqsim-released")
NEIGHBOURS, NEGATIVES, HARD = 128, 15, 8
#: α of EqSim's released command; the paper chooses from 0, 0.04 and 0.1 (EqBen C).
MARGIN = 0.1

#: Weight of each regulariser in its source: beta of EqSim's released command, lambda of CyCLIP. HardNeg is there a loss
#: of its own, added as it is.
PUBLISHED_WEIGHT: dict[RegulariserName, float] = {
    "eqsim-v1": 0.5,
    "eqsim-v2": 0.5,
    "eqsim-hybrid": 0.5,
    "eqsim-v1-released": 0.5,
    "eqsim-v2-released": 0.5,
    "eqsim-hybrid-released": 0.5,
    "hardneg": 1.0,
    "cyclip": 0.25,
    "cyclip-released": 0.25,
}
