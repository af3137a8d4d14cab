"""Edited photos: what is planned, which places are edited, and who edits them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras.tests.edited_photos.conftest import ROWS, replay
from extras.tests.edited_photos.made_edits import (
    LEFT,
    SIDE,
    TOP,
    WIDTH,
    Fake,
    Opened,
    became,
    inside,
    made,
    source,
)
from tests.generators.finished_stage import finished
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.contract import check_source
from twinset.shards.contracts import Context

EXCLUDED = {"other-number": 1, "not-annotated": 1, "no-photo": 1, "not-in-photo": 1, "bad-instance": 2}


def annotate(folder: Path, kept: int, added: dict[str, Any]) -> None:
    """Keep the first annotations, and add one."""
    file = folder / "instances.json"
    whole = json.loads(file.read_text())
    file.write_text(json.dumps({**whole, "annotations": [*whole["annotations"][:kept], added]}))


def test_the_contract_is_kept_and_what_has_no_place_is_counted(folder: Path, context: Context, opened: Opened) -> None:
    check_source(source(folder), context)
    generator = opened()
    planned = list(generator.plan())
    assert [one.counted_as for one in planned] == ["attribute", "object", "removal", "count"]
    assert dict(generator.excluded) == EXCLUDED
    results = list(generator.make(planned))
    assert [became(one) for one in results] == [
        *("attribute", "object", "removal", "bad-mask")  # the smaller dog goes, whose mask is of another picture
    ]
    pair = results[0]
    assert isinstance(pair, Pair) and pair.captions1 == ("A green car on a road.",)
    assert pair.provenance["phrase"] == "a green car"
    assert (pair.image0.source.path, pair.image1.source.path) == ("0.jpg", "editor://mylab-fill/")
    assert pair.provenance["box"] == {"left": LEFT - 4, "top": TOP - 4, "width": SIDE + 9, "height": SIDE + 9}
    assert pair.scores["shift"] == 0 and pair.scores["difference_outside"] == 0 and pair.scores["ssim_outside"] == 1


def test_an_editor_that_gives_other_results_is_named(opened: Opened) -> None:
    generator = opened()
    generator.engine = Fake(inside)
    generator.engine.edit = lambda edits: iter(())
    with pytest.raises(BuildFailed, match=r"^mylab-fill: gives no result for twins-"):
        list(generator.make(list(generator.plan())))
    for other in (lambda one: inside(one).astype(np.float32), lambda one: inside(one)[..., :1]):
        with pytest.raises(
            BuildFailed, match=r"^mylab-fill: twins-.* not uint8 \(height, width, 3\); correct its package"
        ):
            made(opened, other)


def test_a_place_without_a_pixel_is_too_small(folder: Path, opened: Opened) -> None:
    annotate(folder, 0, {"image_id": 7, "category_id": 1, "bbox": [WIDTH + 0.5, 10, 0.1, 5]})
    assert became(made(opened, lambda one: one.pixels ^ 1, smallest=0)) == "place-too-small"


def test_a_place_is_neither_too_small_nor_too_large(opened: Opened) -> None:
    for given, reason in (({"smallest": 0.2}, "place-too-small"), ({"largest": 0.01}, "place-too-large")):
        assert became(made(opened, inside, **given)) == reason


def test_a_place_holds_little_of_another_instance(folder: Path, opened: Opened) -> None:
    annotate(folder, 5, {"image_id": 7, "category_id": 2, "bbox": [LEFT + SIDE // 2, TOP, SIDE, SIDE]})
    result = made(opened, inside)
    assert isinstance(result, Rejected) and (result.reason, result.detail[:2]) == ("place-shared", "0.")
    assert isinstance(made(opened, inside, shared=0.9), Pair)


def test_photos_without_derivatives_are_counted(folder: Path) -> None:
    replay(folder, "closed", "CC-BY-ND-4.0")
    context = Context("twins", earlier=finished(folder, "closed"))
    generator = source(folder).open(context)
    assert not list(generator.plan()) and generator.excluded["no-derivatives"] == len(ROWS)
    assert len(list(source(folder, allow_no_derivatives=True).open(context).plan())) == 4


def test_what_the_instances_say_of_a_photo_is_asked_too(folder: Path, context: Context) -> None:
    """Negative captions copied from a release state no licence; COCO's instances state those of the photos."""
    file = folder / "instances.json"
    whole = json.loads(file.read_text())
    whole["licenses"] = [{"id": 6, "name": "", "url": "http://creativecommons.org/licenses/by-nd/2.0/"}]
    whole["images"][0] |= {"license": 6, "flickr_url": "http://f.example/1"}
    file.write_text(json.dumps(whole))
    generator = source(folder).open(context)
    assert {one.photo for one in generator.plan()} == {"1.jpg"} and generator.excluded["no-derivatives"] == 4
    allowed = source(folder, allow_no_derivatives=True).open(context)
    found = {one.photo: (one.licence, one.source_url) for one in allowed.plan()}
    assert found == {"0.jpg": ("CC-BY-ND-2.0 AND CC0-1.0", "http://f.example/1"), "1.jpg": ("CC0-1.0", "")}
