"""Plans grow at their end, scenes do not change unnoticed, and what cannot be shown is rejected with the reason."""

import re
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinset.contracts.canonical import canonical_json, digest, generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.kubric_scenes.generator import DRAWN, KubricCandidate, KubricGenerator
from twinset.generators.kubric_scenes.scene.bystanders import add_bystanders
from twinset.generators.kubric_scenes.scene.composition import compose
from twinset.generators.kubric_scenes.scene.look import PLAIN
from twinset.generators.kubric_scenes.scene.parts import Drawn, NamedAsset
from twinset.generators.kubric_scenes.source import Kubric
from twinset.shards.contracts import Context

ASSETS = "procedural:manifest.json"
ASPECTS = ("location", "counting", "attribute")

# Of the first scenes of every aspect, positions rounded to a thousandth of a scene unit. When this changes, so do the
# pictures: raise `KubricGenerator.version`.
GOLDEN = {4: "3d527d1a07c878611e4a7dfeb9d4a2ef"}


def generator(aspect: str, **settings: Any) -> KubricGenerator:
    source = {
        "kind": "kubric",
        "aspect": aspect,
        "assets": ASSETS,
        "licence": "CC0-1.0",
        "resolution": 64,
        "samples": 1,
    }
    return Kubric.model_validate({**source, **settings}).open(Context(f"eq-kubric-{aspect}"))


def planned(made: KubricGenerator, count: int) -> list[KubricCandidate]:
    return list(islice(made.plan(), count))


@pytest.mark.parametrize("aspect", ASPECTS)
def test_more_pairs_begin_with_the_same_ones(aspect: str) -> None:
    few, many = planned(generator(aspect), 10), planned(generator(aspect), 40)
    assert many[:10] == few and len({one.key for one in many}) == 40
    for one in many:
        assert re.fullmatch(rf"eq-kubric-{aspect}-[a-z2-7]{{16}}", one.key)
        drawn = DRAWN.validate_json(one.drawn)
        assert canonical_json(asdict(drawn)).decode() == one.drawn and drawn.aspect == aspect


def test_sizes_that_differ_are_of_attributes_and_off_by_default() -> None:
    said = [one.captions0[0].split()[1] for one in planned(generator("attribute", sizes="each"), 40)]
    others = [one.captions1[0].split()[1] for one in planned(generator("attribute", sizes="each"), 40)]
    assert ("small", "large") in zip(said, others, strict=True)
    with pytest.raises(ValidationError, match="sizes: only captions of the aspect attribute say sizes"):
        generator("counting", sizes="each")


def test_another_seed_draws_other_pairs_with_the_same_keys() -> None:
    source = Kubric(kind="kubric", aspect="location", assets=ASSETS, licence="CC0-1.0")
    contexts = [Context("eq-kubric-location", seed=seed) for seed in (0, 1)]
    first, second = (list(islice(source.open(context).plan(), 20)) for context in contexts)
    assert [one.key for one in first] == [one.key for one in second] and first != second


def test_the_card_says_what_varies_by_the_settings(tmp_path: Path) -> None:
    def varies(**settings: Any) -> str:
        source = Kubric(kind="kubric", aspect="location", assets=ASSETS, licence="CC0-1.0", **settings)
        found = re.search(r"hidden\.\n  (.*) vary from", source.notes())
        assert found is not None
        return found[1]

    assert varies() == "Ground, light, camera and up to 2 objects that no caption names"
    assert varies(look=PLAIN) == "Floor colour, light and camera"
    assert varies(backgrounds=tmp_path, look=PLAIN) == "Background and camera"


@pytest.mark.slow
def test_scenes_do_not_change_without_a_new_version() -> None:
    placements = []
    for aspect in ASPECTS:
        made = generator(aspect)
        for candidate in planned(made, 8):
            rng = generator_for(0, made.name, candidate.key)
            drawn, source = DRAWN.validate_json(candidate.drawn), made.source
            scene = compose(drawn, made.shelf, source.size_ratio, rng, [], 0, source.look)
            bystanders = add_bystanders(drawn, (scene.things0, scene.things1), scene.view, source.look, made.shelf, rng)
            for standing in (*scene.things0, *scene.things1, *bystanders):
                placement = standing.placement
                numbers = [placement.scale, *placement.position, *placement.quaternion]
                placements.append([placement.asset, *(round(1000 * number) for number in numbers)])
    assert digest(placements) == GOLDEN[KubricGenerator.version]


def test_what_cannot_be_shown_is_rejected_with_its_reason() -> None:
    made = generator("attribute", attempts=2)
    # Thin scissors take less of a picture than a hat before them.
    hats = [NamedAsset(f"{colour} hat", f"{colour}-hat", "small") for colour in ("brown", "grey")]
    scissors = NamedAsset("red scissors", "red-scissors", "large")
    drawn = Drawn("attribute", hats[0], hats[1], scissors, "in-front", "in-front", 1, 1)
    candidate = replace(planned(made, 1)[0], drawn=canonical_json(asdict(drawn)).decode())
    (result,) = made.make([candidate])
    assert isinstance(result, Rejected) and result.key == candidate.key
    assert result.reason == "size-not-seen" and "the last of 2 tries" in result.detail


def test_a_gpu_that_is_not_there_is_wrong_use() -> None:
    made = generator("location", device="gpu")
    assert generator("location").device() == "cpu"
    try:
        assert made.device().split()[0] in ("OPTIX", "CUDA")
    except WrongUse as error:
        assert "device: cpu" in str(error)


def test_settings_that_only_say_where_or_how_are_not_content(tmp_path: Path) -> None:
    source = Kubric(kind="kubric", aspect="location", assets=ASSETS, licence="CC0-1.0", backgrounds=tmp_path)
    assert {"assets", "backgrounds", "device", "threads"} == {*source.locations, *source.execution}
