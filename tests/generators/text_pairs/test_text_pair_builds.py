"""Text pairs planned from tables of negative captions: groups, splits, images and scores; what others read of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.generators.selection.scored_stage import row, stage_of
from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET, Planned, draw
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.generators.text_pairs import TextPair, TextPairCandidate, TextPairs
from twinset.shards.contracts import Context
from twinset.shards.export.formats import export
from twinset.shards.finished_stage import FinishedStage

KINDS = ("replace_obj", "swap_att")


@pytest.mark.parametrize(("format", "with_images"), [("sugarcrepe", True), ("sugarcrepe", False), ("trohn", True)])
def test_exports_are_read_as_negative_captions_again(
    made: MadeDataset, test_sources: None, tmp_path: Path, format: str, with_images: bool
) -> None:
    plan = []
    for number in range(6):
        type_, _, subtype = KINDS[number % 2].partition("_")
        named = {"key": sample_key("text", number), "group": f"{number}", "image_id": f"{number}"}
        texts = {"caption": f"A dog by car {number}.", "negative_caption": f"A cat by car {number}."}
        image = draw(number) if with_images else None
        pair = TextPair(**named, **texts, split="test", image=image, type=type_, subtype=subtype, provenance={})
        plan.append(Planned(pair, identity_of(number), pair.group))
    made.add("text", NEGATIVE_SUBSET, [plan])
    assert export(made.store, ["text"], format, tmp_path / "to") == 6
    folders = [tmp_path / "to/data"] if format == "trohn" else sorted((tmp_path / "to").iterdir())
    sources = [ReplayedNegatives(kind="replayed-negatives", captions=(path,)).open(Context("s")) for path in folders]
    again = [candidate for source in sources for candidate in source.plan()]
    assert not any(source.excluded for source in sources)
    # Without its file, an image is called as COCO calls it.
    name = "{}" if format == "trohn" else "{}.jpg" if with_images else "{:012d}.jpg"
    assert {(pair.image, pair.caption) for pair in again} == {
        (name.format(number), f"A dog by car {number}.") for number in range(6)
    }
    assert {pair.counted_as for pair in again} == ({""} if format == "trohn" else {*KINDS})


#: Images of six captions, which do not come image by image.
IMAGES = ["139", "000000000724.jpg", "139", "COCO_val2014_000000000785", "", "000000000724.jpg"]


def rows(images: list[str] = IMAGES) -> list[dict[str, Any]]:
    return [row(number, "add_obj", image_id=image, vera_negative=None) for number, image in enumerate(images)]


def pairs(**settings: Any) -> TextPairs:
    return TextPairs.model_validate({"kind": "text-pairs", "negatives": "scores", "licence": "CC0-1.0", **settings})


def planned(earlier: FinishedStage, split: str = "test", **settings: Any) -> list[TextPairCandidate]:
    return list(pairs(**settings).open(Context("text", split, 0, lambda _: earlier)).plan())


def test_splits_are_by_image_and_the_same_in_every_stage(tmp_path: Path) -> None:
    earlier = stage_of(rows([str(number % 500) for number in range(1000)]), tmp_path)
    candidates = planned(earlier, "validation", train=0.8)
    of_image: dict[str, set[str]] = {}
    for pair in candidates:
        of_image.setdefault(pair.image_id, set()).add(pair.split)
    assert {len(splits) for splits in of_image.values()} == {1}
    assert Counter(pair.split for pair in candidates)["train"] / 1000 == pytest.approx(0.8, abs=0.06)
    again = pairs(train=0.8).open(Context("other", "validation", 0, lambda _: earlier)).plan()
    assert [pair.split for pair in again] == [pair.split for pair in candidates]
    assert {pair.split for pair in planned(earlier)} == {"test"}
    with pytest.raises(WrongUse, match="text: its split is 'train'"):
        planned(earlier, "train", train=0.8)


def test_images_are_found_by_id_by_name_and_as_coco_called_them(tmp_path: Path) -> None:
    first, second, third = "000000000139.jpg", "COCO_val2014_000000000724.jpg", "000000000785.jpg"
    for number, name in enumerate((first, second, third)):
        Image.new("RGB", (40, 30), (90 * number, 20, 60)).save(tmp_path / name)
    earlier = stage_of(rows(), tmp_path / "stage")
    generator = pairs(images=tmp_path).open(Context("text", earlier=lambda _: earlier))
    candidates = list(generator.plan())
    assert generator.excluded.examples == [("no-image", 'scores ["c/4"]')]
    made = list(generator.make(candidates))
    names = [pair.image.source.path for pair in made if isinstance(pair, TextPair) and pair.image is not None]
    assert names == [first, first, second, second, third]
    addresses = [row(0, image_id="http://a.example/1.jpg", image="http://a.example/1.jpg")]
    with pytest.raises(WrongUse, match=r"subsets\.text\.source\.images: no row of scores names an image"):
        planned(stage_of(addresses, tmp_path / "addresses"), images=tmp_path)
