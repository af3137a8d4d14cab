"""Kinds come from here or from installed packages; what is not there is said with what is near."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from twinset.contracts import doors
from twinset.contracts.doors import UnknownKind
from twinset.contracts.errors import WrongUse
from twinset.contracts.source import FILTERS, SOURCES, SourceSettings


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as an installed package would bring them."""
    points = {
        "theirs": "twinset.generators.image_files:MediaSource",
        "broken": "twinset.contracts.source:Place",
        "unwell": "tests.contracts.fails_to_import:Source",
        "gebc": "twinset.generators.image_files:MediaSource",
    }
    found = {name: EntryPoint(name, value, "twinset.sources") for name, value in points.items()}
    monkeypatch.setattr(doors, "installed", lambda group: found if group == "twinset.sources" else {})


def test_kinds_of_installed_packages_are_found(foreign: None) -> None:
    assert issubclass(SOURCES.find("theirs"), SourceSettings)
    assert {"theirs", "gebc", "image-pairs"} <= set(SOURCES.kinds()) and "theirs" not in FILTERS.kinds()


def test_no_package_replaces_a_kind_of_twinset(foreign: None) -> None:
    assert SOURCES.find("gebc").__module__ == "twinset.generators.video.gebc" and SOURCES.distribution("gebc") == ""


def test_what_is_not_a_source_is_refused(foreign: None) -> None:
    with pytest.raises(WrongUse, match=r"source 'broken': .*Place.* is not a subclass of SourceSettings; correct"):
        SOURCES.find("broken")


def test_one_kind_of_two_packages_is_refused(bring: Callable[..., None]) -> None:
    bring("second", "twinset.sources", both="twinset.contracts.source:Place", gebc="nothing:Here")
    with pytest.raises(WrongUse, match=r"source 'both' of second 1\.0: .* is not a subclass"):
        SOURCES.find("both")
    bring("first", "twinset.sources", both="twinset.generators.image_files:MediaSource", gebc="nothing:Here")
    with pytest.raises(WrongUse, match="source 'both' comes with first and with second; uninstall all but one"):
        SOURCES.find("both")
    assert SOURCES.find("gebc").__module__ == "twinset.generators.video.gebc"


def test_a_module_that_exits_is_said(bring: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)")
    bring("leaving", "twinset.sources", leaves="exits_at_import:Source")
    with pytest.raises(WrongUse, match=r"source 'leaves' of leaving 1\.0 cannot be imported: SystemExit: 0"):
        SOURCES.find("leaves")


def test_a_module_that_fails_is_said_with_kind_and_line(foreign: None) -> None:
    said = r"source 'unwell' cannot be imported: ZeroDivisionError: .*fails_to_import.py:3\); correct its package"
    with pytest.raises(WrongUse, match=said):
        SOURCES.find("unwell")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("gebcc", "did you mean 'gebc'"), ("zzz", "install the package that provides it, or name one of")],
)
def test_unknown_kinds_are_said_with_what_is_near(kind: str, remedy: str) -> None:
    with pytest.raises(UnknownKind, match=f"there is no source '{kind}' here; {remedy}"):
        SOURCES.find(kind)
