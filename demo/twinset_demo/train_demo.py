"""A training run that takes a minute or two on a CPU: a small dual encoder on painted twins, from random weights."""

from pathlib import Path
from typing import Any

#: The recipe whose subsets are built, and how many pairs of each are enough.
RECIPE = "science"
PAIRS = {"arms": 1200, "validation": 200}
MODEL = Path(__file__).with_name("small_model.json")


def demo_recipe() -> dict[str, Any]:
    """Arguments of `twinset.build`: which subsets of the recipe are built, and how large."""
    return {"only": list(PAIRS), "settings": [f"subsets.{name}.count={count}" for name, count in PAIRS.items()]}


def demo_settings(data: Path) -> dict[str, Any]:
    """Settings of the run (`training.clip.settings.ClipSettings`). data: the folder that was built.

    Both twins of a pair are in the same batch (BiVLC's CLIP_TROHN-Img): the model is to learn what tells them apart.
    """
    training, validation = PAIRS
    return {
        "data": (f"{data}:{training}",),
        "validation": (f"{data}:{validation}",),
        "model": str(MODEL),
        "weights": None,
        "objective": "negative-pairs",
        "batch": 32,
        "steps": 300,
        "lr": 2e-3,
        "warmup": 30,
        "transform": "evaluation",
        "validate_every": 50,
        "best_by": "group",
        "threads": 1,
        "workers": 1,
    }
