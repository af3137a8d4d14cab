"""The flow ``train`` without a server: what it refuses before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.train import train
from manifests.errors import WrongUse


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        ([], {}, "name at least one dataset"),
        (["somewhere"], {"learning_rate": 1}, "learning_rate: Extra inputs"),
        (["somewhere"], {"objective": "captions"}, "objective: Input should be 'infonce'"),
    ],
)
def test_wrong_use_is_told_before_any_work(
    tmp_path: Path, data: list[str], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        train.fn(data, str(tmp_path / "out"), settings)
    assert not (tmp_path / "out").exists()
