"""Absent inputs are named before any work, of sources and of filters alike."""

from pathlib import Path
from typing import Annotated, Literal

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import AnyFilter, Filter
from twinset.contracts.source import AnnotationFile, Place


class Listed(Filter):
    """A filter of somebody else, with a list and words in files."""

    kind: Literal["listed"] = "listed"
    banned: AnnotationFile
    words: Annotated[str, Place("words", "annotations")] = "plain"

    def open(self) -> AnyFilter:
        raise NotImplementedError


def test_an_absent_file_of_a_filter_is_named(tmp_path: Path) -> None:
    filter_ = Listed(banned=tmp_path / "banned.txt")
    with pytest.raises(WrongUse, match=r"subsets\.a\.filters\.0\.banned: there is no file .*--set .*banned=FILE"):
        filter_.check_inputs("subsets.a.filters.0", ("annotations",))
    filter_.check_inputs("subsets.a.filters.0", ("media",))
    (tmp_path / "banned.txt").touch()
    filter_.check_inputs("subsets.a.filters.0", ("annotations",))


def test_words_are_a_name_or_a_place(tmp_path: Path) -> None:
    (tmp_path / "banned.txt").touch()
    with pytest.raises(WrongUse, match=r"words: there is no file or folder .*absent\.yaml"):
        Listed(banned=tmp_path / "banned.txt", words=str(tmp_path / "absent.yaml")).check_inputs("s", ("annotations",))
