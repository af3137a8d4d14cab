"""Kinds come from here or from installed packages; what is not there is said with what is near."""

from collections.abc import Callable
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import FILTERS
from twinset.contracts.source import SOURCES, SourceSettings

MEDIA = "twinset.generators.image_files:MediaSource"


def test_kinds_of_installed_packages_are_found_and_replace_none_of_twinsets(bring: Callable[..., None]) -> None:
    bring("first", "twinset.sources", theirs=MEDIA, gebc="nothing:Here")
    assert issubclass(SOURCES.find("theirs"), SourceSettings) and SOURCES.distribution("theirs") == "first 1.0"
    assert {"theirs", "gebc", "image-pairs"} <= set(SOURCES.kinds()) and "theirs" not in FILTERS.kinds()
    assert SOURCES.find("gebc").__module__ == "twinset.generators.video.gebc" and SOURCES.distribution("gebc") == ""
    bring("second", "twinset.sources", theirs=MEDIA)
    with pytest.raises(WrongUse, match="source 'theirs' comes with first and with second; uninstall all but one"):
        SOURCES.find("theirs")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("twinset.contracts.source:Place", r"source 'theirs' of lab 1\.0: .*Place.* is no SourceSettings"),
        ("exits_at_import:Source", r"source 'theirs' of lab 1\.0 cannot be imported: SystemExit: 0"),
    ],
)
def test_a_broken_package_is_named(bring: Callable[..., None], tmp_path: Path, place: str, problem: str) -> None:
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)")
    bring("lab", "twinset.sources", theirs=place)
    with pytest.raises(WrongUse, match=problem):
        SOURCES.find("theirs")
