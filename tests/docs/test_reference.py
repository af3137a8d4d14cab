"""docs/reference.md is what the code says."""

import importlib.util
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "docs" / "reference.py"


def test_the_reference_is_that_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("reference", PROGRAM)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(reference := importlib.util.module_from_spec(spec))
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run `make reference` and commit what it writes"
