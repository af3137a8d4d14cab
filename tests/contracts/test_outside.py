"""Folders that packages bring: a path of a recipe never leaves them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from twinset.contracts import locations
from twinset.contracts.errors import WrongUse


def test_a_path_stays_in_the_folder_of_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"good": Path("/good")}
    monkeypatch.setattr(locations, "PLACES", SimpleNamespace(kinds=lambda: folders, find=folders.__getitem__))
    assert locations.symbolic(Path("/good/a/../b")) == "good:b"
    assert locations.symbolic(Path("/good/../etc")) == "/etc"
    assert locations.on_this_machine("good:b") == "/good/b"
    for path in ("good:../b", "good:a/../../b", "good:..\\b", "good:C:/b"):
        with pytest.raises(WrongUse, match="leaves the folder of good"):
            locations.on_this_machine(path)
