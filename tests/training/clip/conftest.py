"""Runs of a tiny model on a tiny dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from twinset.training.clip.settings import ClipSettings

Settings = Callable[..., ClipSettings]


@pytest.fixture
def settings(made_pairs: MadeDataset, tmp_path: Path) -> Settings:
    """Settings of a run of 8 steps of 4 examples, two epochs, on 16 twins, validated on 8 others."""
    config = str(open_clip_config(tmp_path / "model"))

    def make(**changes: Any) -> ClipSettings:
        given: dict[str, Any] = {
            "model": config, "weights": None, "data": (f"{made_pairs.root}:eq-ag",), "batch": 4, "epochs": 2,
            "validation": (f"{made_pairs.root}:eq-gebc",), "lr": 1e-3, "warmup": 2, "threads": 1, "checkpoint_every": 3,
        }  # fmt: skip
        return ClipSettings.model_validate(given | changes)

    return make
