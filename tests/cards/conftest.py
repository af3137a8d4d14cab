"""What tests of metadata share."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mlcroissant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, unpacking under tmp_path (its cache is keyed by address alone), and kept from any network."""
    library = pytest.importorskip("mlcroissant")
    epath = pytest.importorskip("etils.epath")
    unpacked = epath.Path(tmp_path / "unpacked")
    monkeypatch.setattr("mlcroissant._src.operation_graph.operations.extract.EXTRACT_PATH", unpacked)

    def refuse(*_: Any) -> None:
        raise AssertionError("validation must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return library
