"""What tests of metadata share."""

import socket
from typing import Any

import pytest

from tests.made_datasets import MadeDataset


@pytest.fixture
def mlcroissant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, kept from any network."""
    library = pytest.importorskip("mlcroissant")

    def refuse(*_: Any) -> None:
        raise AssertionError("validation must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return library


@pytest.fixture
def made_all(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset, made_triplets: MadeDataset, made_templates: MadeDataset
) -> MadeDataset:
    """Subsets of every kind."""
    return made_pairs
