"""What the tests of the extras share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extras.parts import install
from twinset.contracts import doors


@pytest.fixture(scope="session", autouse=True)
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The parts of `tests.extras.parts`, as if their package were installed, for this process and its children."""
    folder = tmp_path_factory.mktemp("packages")
    install(folder)
    places = [str(folder), str(Path(__file__).parents[2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]))
        patch.setattr(sys, "path", [*sys.path, *places])
        doors.all_installed.cache_clear()
        yield
    doors.all_installed.cache_clear()
