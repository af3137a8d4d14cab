"""A folder is bound to one run; what lies in the way of its files is named."""

from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.training.runs.identity import SETTINGS, check_folder


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard", "history.jsonl", SETTINGS])
def test_what_lies_in_the_way_of_a_run_is_named(tmp_path: Path, name: str) -> None:
    if name != SETTINGS:
        (tmp_path / SETTINGS).write_text("{}")
    check_folder(tmp_path)
    if "." in name:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("")
    with pytest.raises(WrongUse, match=rf"{name}: (not )?a folder.*; remove it, or name another --out"):
        check_folder(tmp_path)
