"""What the tests of the extras share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.extras.parts import install
from tests.made_datasets import built, made, made_pairs, made_templates  # noqa: F401
from tests.made_sources import test_sources  # noqa: F401
from twinset.contracts import doors

hypothesis.settings.register_profile("twinset", deadline=None)  # on a busy machine no clock fails a test
hypothesis.settings.load_profile("twinset")


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
