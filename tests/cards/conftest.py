"""What tests of metadata share."""

import socket
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.made_datasets import MadeDataset, _pairs, _templates, _text_pairs, _triplets
from twinset.shards.storage.store import Store


@pytest.fixture
def mlcroissant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, kept from any network."""
    library = pytest.importorskip("mlcroissant")

    def refuse(*_: Any) -> None:
        raise AssertionError("validation must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return library


@pytest.fixture(scope="module")
def every_kind(built: Callable[..., MadeDataset], tmp_path_factory: pytest.TempPathFactory) -> MadeDataset:
    """Subsets of every kind, to be read."""
    root = tmp_path_factory.mktemp("every_kind")
    dataset = MadeDataset(Store(str(root)), root)
    for fill in (_pairs, _triplets, _text_pairs, _templates):
        dataset.take(built(fill))
    return dataset


@pytest.fixture(scope="module")
def described(every_kind: MadeDataset) -> Callable[[str], MadeDataset]:
    """Describes a subset of `every_kind` by its name, once."""

    @cache
    def describe(name: str) -> MadeDataset:
        every_kind.describe(name)
        return every_kind

    return describe
