from pathlib import Path

import pytest

from tests.generators.human_baseline.asked_pairs import build_pairs


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pairs(tmp_path_factory.mktemp("pairs"))
