"""What tests of metadata share."""

import socket
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mlcroissant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library with its cache, as every user has one for all datasets, below tmp_path; kept from any network."""
    library = pytest.importorskip("mlcroissant")
    epath = pytest.importorskip("etils.epath")
    cache = epath.Path(tmp_path / "cache")
    monkeypatch.setattr("mlcroissant._src.operation_graph.operations.extract.EXTRACT_PATH", cache)

    def refuse(*_: Any) -> None:
        raise AssertionError("validation must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return library
