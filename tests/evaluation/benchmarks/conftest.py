"""Layouts of benchmarks that several tests read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader

Opener = Callable[..., Reader]


@pytest.fixture
def made_benchmark(tmp_path: Path) -> Opener:
    """Writes the tiny layout of a benchmark into the test's folder, and opens it."""

    def make(name: str, *subsets: str) -> Reader:
        LAYOUTS[name](tmp_path)
        return open_benchmark(name, tmp_path, subsets)

    return make
