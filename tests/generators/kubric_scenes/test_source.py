"""Nearly all pairs are kept, and what cannot be shown is rejected with the reason.

Scenes are of the real vocabulary, with the real assets and physics.
"""

from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from twinset.contracts.canonical import canonical_json, digest, generator_for
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.captions import Drawn, NamedAsset
from twinset.generators.kubric_scenes.composition import compose, settle
from twinset.generators.kubric_scenes.geometry import Placement, View, project
from twinset.generators.kubric_scenes.source import Kubric, KubricCandidate
from twinset.shards.contracts import Context

ASSETS = "procedural:manifest.json"
ASPECTS = ("location", "counting", "attribute")

# Of the first scenes of every aspect, positions rounded to a thousandth of a scene unit. When this changes, so do the
# pictures: raise `Kubric.version`.
GOLDEN = {7: "52c95cd6fd59b2586ab9323180781aab"}


def opened(aspect: str, **settings: Any) -> Kubric:
    settings = {"assets": ASSETS, "licence": "CC0-1.0", "resolution": 64, "samples": 1, **settings}
    source = Kubric.model_validate({"kind": "kubric", "aspect": aspect, **settings})
    kubric: Kubric = source.open(Context(f"eq-kubric-{aspect}"))
    return kubric


def planned(kubric: Kubric, count: int) -> list[KubricCandidate]:
    return list(islice(kubric.plan(), count))  # type: ignore[arg-type]


@pytest.mark.slow
def test_scenes_do_not_change_without_a_new_version() -> None:
    placements = []
    for aspect in ASPECTS:
        kubric = opened(aspect)
        for candidate in planned(kubric, 8):
            rng = generator_for(0, kubric.stage.name, candidate.key)
            drawn = TypeAdapter(Drawn).validate_json(candidate.drawn)
            view, things0, things1 = compose(drawn, kubric.shelf, rng)
            for standing in (*things0, *things1):
                placement = standing.placement
                numbers = [placement.scale, *placement.position, *placement.quaternion, *view.camera]
                placements.append([placement.asset, *(round(1000 * number) for number in numbers)])
    assert digest(placements) == GOLDEN[Kubric.version]


def test_what_cannot_be_shown_is_rejected_with_its_reason() -> None:
    made = opened("attribute", attempts=2)
    # Thin scissors take less of a picture than a hat before them.
    hats = [NamedAsset(f"{colour} hat", f"{colour}-hat", "small") for colour in ("brown", "grey")]
    scissors = NamedAsset("red scissors", "red-scissors", "large")
    drawn = Drawn("attribute", hats[0], hats[1], scissors, "in-front", "in-front", 1, 1)
    candidate = replace(planned(made, 1)[0], drawn=canonical_json(asdict(drawn)).decode())
    (result,) = made.make([candidate])
    assert isinstance(result, Rejected) and result.key == candidate.key
    assert result.reason == "size-not-seen" and "the last of 2 tries" in result.detail


def test_a_pinhole_camera() -> None:
    view = View((0.0, -10.0, 0.0), (0.0, 0.0, 0.0), (1, 1, 1))
    pixels, distances = project(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 10.0, 1.0]]), view, 360)
    # 80 mm before a sensor of 36 mm and 360 pixels: 800 pixels a unit at distance 1.
    assert pixels == pytest.approx(np.array([[180, 180], [260, 180], [180, 140]]))
    assert distances == pytest.approx([10, 10, 20])


BOX = Placement("box", 0.5, (0.0, 0.0, 0.25), (1.0, 0.0, 0.0, 0.0))  # 1 × 0.7 × 0.5 units, standing on the floor
CAN = Placement("can", 0.5, (0.1, 0.05, 1.2), (1.0, 0.0, 0.0, 0.0))  # 0.8 units high


def test_a_thing_dropped_on_another_lies_on_it_and_over_its_edge_on_the_floor(shelf: AssetShelf) -> None:
    placement, carried = settle(shelf, BOX, CAN)
    assert carried and placement.position == pytest.approx((0.1, 0.05, 0.5 + 0.4), abs=0.01)
    assert abs(placement.quaternion[0]) == pytest.approx(1.0, abs=0.01)
    fallen, carried = settle(shelf, BOX, replace(CAN, position=(0.0, 0.5, 1.2)))
    assert not carried and fallen.position[2] < 0.5
    assert settle(shelf, BOX, CAN) == (placement, True), "the same drop ends at the same floats"
