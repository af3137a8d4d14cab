"""What is not installed is named with the key of the recipe."""

import pytest

from twinset.manifests.errors import WrongUse
from twinset.models.spacy_pipelines import EMBEDDED, check_installed


def test_a_library_or_pipeline_that_is_not_installed_is_named_before_work() -> None:
    check_installed("stages.graphs.source", EMBEDDED)
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source: no-such-parser is not installed; pip install"):
        check_installed("stages.graphs.source", EMBEDDED, "no-such-parser")
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source\.pipeline: pipeline no_such: neither"):
        check_installed("stages.graphs.source", "no_such")
