"""Folders that packages bring: a path of a recipe never leaves them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from twinset.contracts import locations
from twinset.contracts.errors import WrongUse


def test_a_place_is_an_absolute_folder_and_a_broken_one_troubles_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder would be one of whoever controls the working folder."""
    folders = {"relative": Path("data"), "good": Path("/good")}
    monkeypatch.setattr(locations, "PLACES", SimpleNamespace(kinds=lambda: folders, find=folders.__getitem__))
    assert locations.symbolic(Path("/good/a/../b")) == "good:b"
    assert locations.symbolic(Path("/good/../etc")) == "/etc"
    assert locations.on_this_machine("good:b") == "/good/b"
    with pytest.raises(WrongUse, match="place 'relative': its package names the relative folder data; correct the p"):
        locations.on_this_machine("relative:b")
    for path in ("good:../b", "good:a/../../b", "good:..\\b", "good:C:/b"):
        with pytest.raises(WrongUse, match="leaves the folder of good"):
            locations.on_this_machine(path)
