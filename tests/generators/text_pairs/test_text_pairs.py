"""Text pairs planned from tables of negative captions: groups, splits, images and scores."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from tests.generators.finished_stage import write_index
from tests.generators.selection.scored_stage import row, stage_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.kinds.text_pair import TextPair
from twinset.generators import text_pairs as module
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.text_pairs import TextPairCandidate, TextPairs
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage

#: Images of six captions, which do not come image by image.
IMAGES = ["139", "000000000724.jpg", "139", "COCO_val2014_000000000785", "", "000000000724.jpg"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, name in enumerate(("000000000139.jpg", "COCO_val2014_000000000724.jpg", "000000000785.jpg")):
        Image.new("RGB", (40, 30), (90 * number, 20, 60)).save(folder / name)
    return folder


def rows(images: list[str] = IMAGES) -> list[dict[str, Any]]:
    return [row(number, "add_obj", image_id=image, vera_negative=None) for number, image in enumerate(images)]


def pairs(**settings: Any) -> TextPairs:
    return TextPairs.model_validate({"kind": "text-pairs", "negatives": "scores", "licence": "CC0-1.0", **settings})


def planned(
    earlier: FinishedStage, split: str = "test", name: str = "text", **settings: Any
) -> list[TextPairCandidate]:
    return list(pairs(**settings).open(Context(name, split, 0, lambda _: earlier)).plan())


def test_pairs_of_an_image_follow_each_other_in_the_order_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = stage_of(rows(), tmp_path, row_group=2)
    found = planned(earlier)
    assert [one.caption_id for one in found] == ["c/0", "c/2", "c/1", "c/5", "c/3", "c/4"]
    assert [one.group for one in found][:5] == [IMAGES[place] for place in (0, 2, 1, 5, 3)]
    assert found[5].group == found[5].key
    for block in (1, 3, 4):
        monkeypatch.setattr(module, "BLOCK", block)
        assert planned(earlier) == found


def test_groups_are_whole_whatever_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = [str(number * number % 37) if number % 5 else "" for number in range(400)]
    earlier = stage_of(rows(images), tmp_path, row_group=64)
    monkeypatch.setattr(module, "BLOCK", 50)
    groups = [group for group, _ in groupby(planned(earlier), key=lambda one: one.group)]
    assert len(groups) == len(set(groups)) and len(groups) == 80 + len({*images} - {""})


def test_splits_are_by_image_and_the_same_in_every_stage(tmp_path: Path) -> None:
    earlier = stage_of(rows([str(number % 1000) for number in range(3000)]), tmp_path)
    found = planned(earlier, "validation", train=0.8)
    of_image: dict[str, set[str]] = {}
    for one in found:
        of_image.setdefault(one.image_id, set()).add(one.split)
    assert {len(splits) for splits in of_image.values()} == {1}
    assert Counter(one.split for one in found)["train"] / 3000 == pytest.approx(0.8, abs=0.04)
    again = planned(earlier, "validation", name="other", train=0.8)
    assert [one.split for one in again] == [one.split for one in found]
    smaller = {one.image_id for one in planned(earlier, train=0.5) if one.split == "train"}
    assert smaller < {one.image_id for one in found if one.split == "train"}, "a larger share takes images away"
    assert {one.split for one in planned(earlier)} == {"test"}
    with pytest.raises(WrongUse, match=r"text: its split is 'train' .* such as validation"):
        planned(earlier, "train", train=0.8)


def test_images_are_found_by_id_by_name_and_as_coco_called_them(photos: Path, tmp_path: Path) -> None:
    generator = pairs(images=photos).open(Context("text", earlier=lambda _: stage_of(rows(), tmp_path)))
    candidates = list(generator.plan())
    assert generator.excluded.examples == [("no-image", 'scores ["c/4"]')]
    made = list(generator.make(candidates))
    names = [one.image.source.path for one in made if isinstance(one, TextPair) and one.image is not None]
    first, second, third = "000000000139.jpg", "COCO_val2014_000000000724.jpg", "000000000785.jpg"
    assert names == [first, first, second, second, third]
    (photos / second).unlink()
    again = pairs(images=photos).open(Context("text", earlier=lambda _: stage_of(rows(), tmp_path)))
    lost = [one for one in again.make(candidates) if isinstance(one, Rejected)]
    assert [(one.reason, one.media) for one in lost] == [("missing-media", "000000000724.jpg")] * 2


def test_a_pair_has_the_words_the_scores_and_where_they_come_from(tmp_path: Path) -> None:
    earlier = stage_of(rows(), tmp_path)
    generator = pairs().open(Context("text", earlier=lambda _: earlier))
    first = next(iter(generator.plan()))
    (made,) = generator.make([first])
    assert isinstance(made, TextPair) and made.image is None
    assert (made.caption, made.negative_caption) == ("A man sees picture 0.", "A man sees painting 0.")
    assert (made.type, made.subtype, made.image_id, made.group) == ("add", "obj", "139", "139")
    key = earlier.read(["key"])["key"][0].as_py()
    assert made.provenance == {"caption_id": "c/0", "image_id": "139", "negative_key": key}
    assert made.scores["lm_negative"] == -3.0 and "vera_negative" not in made.scores and len(made.scores) == 6


def test_a_table_without_scores_will_do(tmp_path: Path) -> None:
    columns: dict[str, Any] = {name: [row(0)[name]] for name in COLUMNS.names}
    earlier = write_index(pa.table({"key": ["a-1"], "identity": ['["c/0"]'], **columns}), tmp_path, "plain", 1)
    (one,) = planned(earlier)
    assert one.scores() == {} and one.negative_key == "a-1"


def test_addresses_are_no_images(photos: Path, tmp_path: Path) -> None:
    earlier = stage_of([row(0, image_id="http://a.example/1.jpg", image="http://a.example/1.jpg")], tmp_path)
    with pytest.raises(WrongUse, match=r"subsets\.text\.source\.images: no row of scores names an image"):
        planned(earlier, images=photos)
    assert len(planned(earlier)) == 1
