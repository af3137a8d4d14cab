"""The contract of caption scorers: `twinset.check_scorer` of each kind, with tiny models."""

from pathlib import Path

import pytest

from tests.generators.caption_scores.tiny_scorers import MODELS, settings
from twinset import check_scorer
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS


@pytest.mark.parametrize("kind", CAPTION_SCORERS.kinds())
def test_a_scorer_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    assert kind in MODELS, f"caption scorer {kind} has no tiny model: write one in MODELS"
    check_scorer(settings(kind, MODELS[kind](tmp_path / kind)))
