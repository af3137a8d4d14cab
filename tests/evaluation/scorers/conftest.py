"""The way to a server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinset.evaluation.scorers.asking import ADDRESS, KEY, SETTINGS


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables that lead to a server."""

    def lead(url: str, **settings: Any) -> None:
        chosen = {"answers": str(tmp_path), "longest_wait": 0.01, "timeout": 300, **settings}
        monkeypatch.setenv(ADDRESS, url)
        monkeypatch.setenv(SETTINGS, json.dumps(chosen))
        monkeypatch.delenv(KEY, raising=False)

    return lead
