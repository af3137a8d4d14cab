"""What tests of metadata share."""

import socket
from typing import Any

import pytest


@pytest.fixture
def mlcroissant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, kept from any network."""
    library = pytest.importorskip("mlcroissant")

    def refuse(*_: Any) -> None:
        raise AssertionError("validation must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return library
