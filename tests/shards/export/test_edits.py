"""Export of failed edits: rows of a pair, and what its JSON must say of them."""

import base64
from typing import Any
from unittest.mock import Mock

import pytest

from twinset.contracts.errors import WrongUse
from twinset.shards.export.edits import COLUMNS, _row
from twinset.shards.storage.tar_reader import BrokenTar

FAILED = {"reason": "moved", "seed": 1, "image": base64.b64encode(b"failed").decode()}


def row(provenance: Any) -> dict[str, Any] | None:
    pair = Mock(
        key="p0", extension="png", images={"image0": b"0", "image1": b"1"}, texts={"caption0": "", "caption1": ""}
    )
    terms = {"licence": "CC0-1.0", "credit": "them", "source_url": ""}
    pair.json = Mock(provenance=provenance, **{"terms.columns": terms, "source.dataset": "edited-photos"})
    return _row(pair)


def test_a_row_has_both_edits_and_the_terms_of_its_pair() -> None:
    found = row({"instruction": "remove the car", "failed": FAILED})
    assert found and list(found) == list(COLUMNS)
    assert [found[name]["bytes"] for name in ("image", "chosen", "rejected")] == [b"0", b"1", b"failed"]
    assert (found["prompt"], found["reason"], found["credit"]) == ("remove the car", "moved", "them")
    assert row({"instruction": "remove the car", "failed": {**FAILED, "reason": "", "image": ""}}) is None


@pytest.mark.parametrize("failed", [None, "moved", {}, {**FAILED, "image": "no base64!"}, {**FAILED, "image": 7}])
def test_what_cannot_be_read_names_the_pair(failed: Any) -> None:
    with pytest.raises(BrokenTar, match=r"^p0: its JSON says nothing readable of failed edits"):
        row({"instruction": "remove the car", "failed": failed})
    with pytest.raises(WrongUse, match=r"^p0 comes from edited-photos and says nothing of failed edits"):
        row({})
