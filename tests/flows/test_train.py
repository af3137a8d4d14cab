"""The flow ``train`` without a server: what it refuses before any work."""

from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.flows.models import train


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        ([], {}, "name at least one dataset"),
        (["somewhere"], {"learning_rate": 1}, "learning_rate: unknown; name one of "),
        (["somewhere"], {"objective": "captions"}, "there is no objective 'captions'"),
        (["somewhere"], {"task": "segmenter"}, "task 'segmenter': name one of clip, combiner, fusion, detectors"),
        (["somewhere"], {"task": "combiner", "objective": "infonce"}, "objective: unknown; "),
        (["somewhere"], {"task": "detectors", "held_out": 2}, "held_out: Input should be less than 0.5"),
    ],
)
def test_wrong_use_is_told_before_any_work(
    tmp_path: Path, data: list[str], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        train.fn(
            data,
            str(tmp_path / "out"),
            {k: v for k, v in settings.items() if k != "task"},
            settings.get("task", "clip"),
        )
    assert not (tmp_path / "out").exists()
