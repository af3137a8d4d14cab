"""Plans grow at their end, scenes do not change unnoticed, and what cannot be shown is rejected with the reason."""

from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import canonical_json, digest, generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.kubric_scenes.scene.composition import compose
from twinset.generators.kubric_scenes.scene.parts import Drawn, NamedAsset
from twinset.generators.kubric_scenes.source import Kubric, KubricCandidate
from twinset.shards.contracts import Context

ASSETS = "procedural:manifest.json"
ASPECTS = ("location", "counting", "attribute")

# Of the first scenes of every aspect, positions rounded to a thousandth of a scene unit. When this changes, so do the
# pictures: raise `Kubric.version`.
GOLDEN = {5: "2fe556ba9381168a0cc29ae23571301d"}


def opened(aspect: str, **settings: Any) -> Kubric:
    source = {
        "kind": "kubric",
        "aspect": aspect,
        "assets": ASSETS,
        "licence": "CC0-1.0",
        "resolution": 64,
        "samples": 1,
    }
    kubric: Kubric = Kubric.model_validate({**source, **settings}).open(Context(f"eq-kubric-{aspect}"))
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


def test_sizes_that_differ_are_of_attributes_and_off_by_default() -> None:
    words = [
        (candidate.captions0[0].split()[1], candidate.captions1[0].split()[1])
        for candidate in planned(opened("attribute", sizes="each"), 40)
    ]
    assert ("small", "large") in words
    with pytest.raises(ValidationError, match="sizes: only captions of the aspect attribute say sizes"):
        opened("counting", sizes="each")


def test_the_card_says_what_varies_by_the_settings(tmp_path: Path) -> None:
    source = Kubric(kind="kubric", aspect="location", assets=ASSETS, licence="CC0-1.0")
    assert "Floor colour, light and camera vary from" in source.notes()
    assert "Background and camera vary from" in source.model_copy(update={"backgrounds": tmp_path}).notes()


@pytest.mark.slow
def test_scenes_do_not_change_without_a_new_version() -> None:
    placements = []
    for aspect in ASPECTS:
        kubric = opened(aspect)
        for candidate in planned(kubric, 8):
            rng = generator_for(0, kubric.stage.name, candidate.key)
            drawn = TypeAdapter(Drawn).validate_json(candidate.drawn)
            scene = compose(drawn, kubric.shelf, kubric.size_ratio, rng, [])
            for standing in (*scene.things0, *scene.things1):
                placement = standing.placement
                numbers = [placement.scale, *placement.position, *placement.quaternion, *scene.view.camera]
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


def test_a_gpu_that_is_not_there_is_wrong_use() -> None:
    made = opened("location", device="gpu")
    assert opened("location").runs_on() == "cpu"
    try:
        assert made.runs_on().split()[0] in ("OPTIX", "CUDA")
    except WrongUse as error:
        assert "device: cpu" in str(error)


def test_settings_that_only_say_where_or_how_are_not_content(tmp_path: Path) -> None:
    source = Kubric(kind="kubric", aspect="location", assets=ASSETS, licence="CC0-1.0", backgrounds=tmp_path)
    assert {"assets", "backgrounds", "device", "threads"} == {*source.locations, *source.execution}
