"""``twinset train fusion``: the matching head of a fusion encoder on mined negatives."""

from typing import Any

from twinset.cli.train.options import add_resumable_settings
from twinset.cli.train.run import add_training
from twinset.training.losses.names import FUSION_REGULARISERS

#: Options that take one value: name, how it is shown, what it is.
VALUES = (
    ("model", "KIND:FOLDER", "blip-itm:, vilt: or flava: and its folder in the layout of transformers"),
    ("neighbours-by", "MODEL", "encoder by whose features images are similar (default: the model's own image tower)"),
    ("neighbours", "N", "of an image, whose texts are scored once (default: 128)"),
    ("negatives", "N", "of an example in each step (default: 15)"),
    ("hard", "N", "of these, the best neighbours; the others are random (default: 8)"),
    ("regulariser-weight", "X", "of the regulariser in the loss (default: 0.5)"),
    ("margin", "X", "of the regulariser (default: 0.1)"),
    ("batch", "N", "examples of an optimiser step (default: 1024, in parts of 8)"),
    ("epochs", "N", "passes over the data (default: 10)"),
    ("lr", "X", "peak learning rate; it falls linearly to 0 (default: 2e-5)"),
    ("lr-times", "X", "factor of the rate of heads and cross-modal layers (default: 5)"),
    ("eps", "X", "of AdamW (default: 1e-8)"),
    ("weight-decay", "X", "of AdamW; not on norms and biases (default: 0.01)"),
    ("warmup", "SHARE", "of the steps, in which the learning rate rises (default: 0.1)"),
    ("seed", "N", "of order, crops, dropout and sampled negatives (default: 0)"),
)
#: Options with a choice of values.
CHOICES = (
    ("objective", ("match", "rank"), "each pair matches or not, or the own text among all (default: match)"),
    ("regulariser", FUSION_REGULARISERS, "EqSim, added to the objective"),
)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = (
        "train the matching head of a fusion encoder on mined negatives, with EqSim if asked; the defaults are FIBER's "
        "and METER's. The same command resumes a run that was stopped, to the same bytes; see docs/training.md"
    )
    training = add_training(commands, "fusion", text, "train a fusion encoder: BLIP, ViLT, FLAVA")
    add_resumable_settings(
        training, "pairs that twinset built", "twins to choose the best weights by", CHOICES, VALUES, "0.9 0.98"
    )
