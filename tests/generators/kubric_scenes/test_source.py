"""Plans grow at their end, scenes do not change unnoticed, and what cannot be shown is rejected with the reason."""

from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import canonical_json, digest, generator_for
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.kubric_scenes.captions import Drawn, NamedAsset
from twinset.generators.kubric_scenes.composition import compose
from twinset.generators.kubric_scenes.source import Kubric, KubricCandidate
from twinset.shards.contracts import Context

ASSETS = "procedural:manifest.json"
ASPECTS = ("location", "counting", "attribute")

# Of the first scenes of every aspect, positions rounded to a thousandth of a scene unit. When this changes, so do the
# pictures: raise `Kubric.version`.
GOLDEN = {6: "2fe556ba9381168a0cc29ae23571301d"}


def opened(aspect: str, **settings: Any) -> Kubric:
    settings = {"assets": ASSETS, "licence": "CC0-1.0", "resolution": 64, "samples": 1, **settings}
    source = Kubric.model_validate({"kind": "kubric", "aspect": aspect, **settings})
    kubric: Kubric = source.open(Context(f"eq-kubric-{aspect}"))
    return kubric


def planned(kubric: Kubric, count: int) -> list[KubricCandidate]:
    return list(islice(kubric.plan(), count))  # type: ignore[arg-type]


@pytest.mark.parametrize("aspect", ASPECTS)
def test_more_pairs_begin_with_the_same_ones(aspect: str) -> None:
    few, many = planned(opened(aspect), 10), planned(opened(aspect), 40)
    assert many[:10] == few and len({candidate.key for candidate in many}) == 40
    for candidate in many:
        drawn = TypeAdapter(Drawn).validate_json(candidate.drawn)
        assert canonical_json(asdict(drawn)).decode() == candidate.drawn and drawn.aspect == aspect


def test_sizes_that_differ_are_of_attributes() -> None:
    candidates = planned(opened("attribute", sizes="each"), 40)
    assert any(" small " in one.captions0[0] and " large " in one.captions1[0] for one in candidates)
    with pytest.raises(ValidationError, match="sizes"):
        opened("counting", sizes="each")


@pytest.mark.slow
def test_scenes_do_not_change_without_a_new_version() -> None:
    placements = []
    for aspect in ASPECTS:
        kubric = opened(aspect)
        for candidate in planned(kubric, 8):
            rng = generator_for(0, kubric.stage.name, candidate.key)
            drawn = TypeAdapter(Drawn).validate_json(candidate.drawn)
            view, things0, things1 = compose(drawn, kubric.shelf, kubric.size_ratio, rng)
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
