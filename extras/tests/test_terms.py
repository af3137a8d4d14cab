"""Nothing is drawn from negative captions that allow no derivatives, and what COCO says of its photographs is read."""

import json
from pathlib import Path

import pytest

from tests.generators.test_terms_survive import ADA, CLOSED, COCO, STATED, negatives, settings
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.contracts.parts import LeftOut
from twinset_extras.edited_photos.places import Instances


def test_nothing_is_drawn_from_what_allows_no_derivatives(tmp_path: Path) -> None:
    context, given = negatives(tmp_path, [ADA, CLOSED]), {"negatives": "n", "model": "/m", "licence": "MIT"}
    with pytest.raises(WrongUse, match=r"without derivatives \(https://b\.example/2\).*allow_no_derivatives: true"):
        list(settings("drawn-negatives", **given).open(context).plan())
    allowed = settings("drawn-negatives", **given, allow_no_derivatives=True).open(context).plan()
    assert {(one.licence, one.credit) for one in allowed} == {
        ("CC-BY-SA-2.0 AND MIT", "Ada (CC-BY-SA-2.0)"),
        ("CC-BY-ND-2.0 AND MIT", "Bob (CC-BY-ND-2.0)"),
    }


def test_what_instances_say_of_photos_is_read(tmp_path: Path) -> None:
    annotations = [{"image_id": one, "category_id": 1, "bbox": [1, 1, 5, 5]} for one in STATED]
    whole = {**COCO, "categories": [{"id": 1, "name": "car"}], "annotations": annotations}
    (tmp_path / "i.json").write_text(json.dumps(whole))
    instances = Instances(tmp_path / "i.json", LeftOut())
    assert [instances.terms_of(f"{one}.jpg", "") for one in STATED] == [*STATED.values()]
    assert instances.terms_of("x.jpg", "1") == STATED[1] and instances.terms_of("x.jpg", "x") == Terms()
