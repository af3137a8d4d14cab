"""``twinset train detectors``: BiVLC's detectors of natural and synthetic captions and images."""

from typing import Any

from twinset.cli.options import add_cache
from twinset.cli.train.options import add_settings
from twinset.cli.train.run import add_training

#: Options that take one value: name, how it is shown, what it is.
VALUES = (
    (
        "model",
        "KIND:NAME[:CHECKPOINT]",
        "a dual encoder, as `twinset eval run` names it (default: open_clip:ViT-B-32:openai)",
    ),
    (
        "held-out",
        "SHARE",
        "share of the groups that choose the epoch, and of those that test the detectors (default: 0.1 each)",
    ),
    ("rate", "X", "learning rate (default: 1e-3, as released; the paper has 1e-6)"),
    ("text-epochs", "N", "of the texts (default: 10)"),
    ("image-epochs", "N", "of the images (default: 1)"),
    ("seed", "N", "of groups, weights and order (default: 42)"),
    ("threads", "N", "threads of torch (default: one a core)"),
    ("encode-batch", "N", "images or texts in one pass (default: 32)"),
)
CHOICES = (("device", ("cpu", "gpu"), "what runs --model (default: cpu)"),)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = "train detectors of natural and synthetic captions and images on the features of a frozen model (BiVLC)"
    training = add_training(commands, "detectors", text)
    data = "what twinset built: pairs of which the second half is synthetic, or text pairs"
    add_settings(training, data, CHOICES, VALUES, "DIR[:SUBSET]")
    add_cache(training)
