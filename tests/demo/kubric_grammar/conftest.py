"""A workshop whose assets all tests of this folder share."""

from collections.abc import Iterator

import pytest

from twinset_demo.kubric_grammar.workshop import Workshop


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.shelf.close()
