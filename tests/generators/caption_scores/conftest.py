"""Tables of negatives as finished stages, and tiny scorers."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.generators.caption_scores.tiny_scorers import save_cola, save_language_model, save_vera
from tests.generators.finished_stage import write_index
from tests.models.diffusion.tiny_models import save_clip
from twinset.contracts.canonical import identity_of
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.shards.finished_stage import FinishedStage


@pytest.fixture(scope="session")
def scorer_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("tiny-scorers")
    return {
        "vera": save_vera(root / "vera"),
        "cola": save_cola(root / "cola"),
        "clip": save_clip(root / "clip"),
        "language-model": save_language_model(root / "lm"),
    }


def negatives(folder: Path, pairs: Sequence[tuple[str, str]], row_group: int = 1000) -> FinishedStage:
    """A finished stage with a row for each caption and negative."""
    rows = [
        {
            "key": f"negatives-{number}",
            "identity": identity_of(f"add_obj/{number}"),
            "caption_id": f"add_obj/{number}",
            "image_id": f"{number}.jpg",
            "image": f"{number}.jpg",
            "caption": caption,
            "negative_caption": negative,
            "type": "add",
            "subtype": "obj",
        }
        for number, (caption, negative) in enumerate(pairs)
    ]
    schema = pa.schema([("key", pa.string()), ("identity", pa.string()), *COLUMNS])
    return write_index(pa.Table.from_pylist(rows, schema), folder, "negatives", len(rows), row_group)
