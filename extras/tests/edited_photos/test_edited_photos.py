"""Edited photos: what is planned, which places are edited, and who edits them.

Edits by a pipeline of diffusers, from recipe to shards, with a tiny model.
COCO's instances: which photo an annotation is of, its mask, and what is refused.
Edited photos are proved on the stored files: only the place has changed.
Which change a negative caption asks for, whose place it is, and why there is none.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from PIL import Image

from extras.tests.edited_photos.conftest import ROWS, replay
from extras.tests.edited_photos.made_edits import (
    HEIGHT,
    LEFT,
    SIDE,
    TOP,
    WIDTH,
    Fake,
    Opened,
    became,
    inside,
    made,
    photo,
    shifted,
    source,
)
from extras.tests.killed_builds import build, kill_midway, tars
from tests.generators.finished_stage import finished
from tests.models.diffusion.tiny_pipelines import save
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import LeftOut
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.image_editor import Edit
from twinset_extras.edited_photos.places import BadMask, Instances, outline_mask
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, plural_of, wanted

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
    generator.__dict__["worker"] = Fake(inside)
    generator.worker.edit = lambda edits: iter(())
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


@pytest.mark.slow
def test_edits_that_are_killed_and_resumed_equal_those_that_were_not(tmp_path: Path) -> None:
    save(tmp_path, "FluxPipeline")
    boxes = [[40, 60, 64, 64]] * 4
    images = [{"id": number, "file_name": f"{number}.jpg"} for number in range(4)]
    found = [{"image_id": number, "category_id": 1, "bbox": box} for number, box in enumerate(boxes)]
    annotations = {"images": images, "categories": [{"id": 1, "name": "car"}], "annotations": found}
    (tmp_path / "instances.json").write_text(json.dumps(annotations))
    rows = [
        {"image": f"{number}.jpg", "caption": "A red car on a road.", "negative_caption": f"A {one} car on a road."}
        for number, one in enumerate(("green", "blue", "green", "blue"))
    ]
    (tmp_path / "negatives.json").write_text(json.dumps([{**row, "type": "replace", "subtype": "att"} for row in rows]))
    (tmp_path / "photos").mkdir()
    for number in range(4):
        spots = np.random.default_rng(number).integers(0, 256, (32, 40, 3), dtype=np.uint8)
        Image.fromarray(spots).resize((320, 256), Image.Resampling.BICUBIC).save(tmp_path / f"photos/{number}.jpg")
    engine = {"kind": "diffusers-edit", "model": "./model", "licence": "MIT", "steps": 2, "resolution": 64}
    twins = {"kind": "edited-photos", "negatives": "negatives", "photos": "photos", "instances": "instances.json"}
    stages = {"negatives": {"source": {"kind": "replayed-negatives", "captions": "negatives.json", "licence": "MIT"}}}
    subsets = {"twins": {"source": {**twins, "engine": engine}, "shard_size": 1}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"name": "edited", "stages": stages, "subsets": subsets}))
    whole = build(tmp_path, "whole")
    assert whole.wait() == 0, whole.stdout and whole.stdout.read()
    kill_midway(tmp_path, "killed", "twins")
    again = build(tmp_path, "killed")
    assert again.wait() == 0, again.stdout and again.stdout.read()
    made = tars(tmp_path, "whole", "twins")
    assert made and tars(tmp_path, "killed", "twins") == made
    card = (tmp_path / "killed/twins/README.md").read_text()
    assert "diffusers-edit" in card


HUGE = 10**400


def instances(folder: Path, files: list[Any], annotations: list[Any], left_out: LeftOut | None = None) -> Instances:
    images = [{"id": number, "file_name": file} for number, file in enumerate(files)]
    said = {"images": images, "categories": [{"id": 1, "name": "Cup"}], "annotations": annotations}
    (folder / "instances.json").write_text(json.dumps(said))
    return Instances(folder / "instances.json", LeftOut() if left_out is None else left_out)


def on(image: int, left: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": 1, "bbox": [left, 0, 5, 5]}


def test_a_name_of_a_file_comes_before_a_number(tmp_path: Path) -> None:
    found = instances(tmp_path, ["1.jpg", "2.jpg", "train/0.jpg", "val/0.jpg"], [on(n, n) for n in range(4)])

    def lefts(image: str, image_id: str) -> list[float] | None:
        places = found.of(image, image_id)
        return None if places is None else [one.box[0] for one in places]

    assert lefts("1.jpg", "") == [0] and lefts("a/2.jpg", "") == [1]
    assert lefts("train/0.jpg", "") == [2] and lefts("val/0.jpg", "") == [3]
    assert lefts("val/1.jpg", "x") == [0]
    assert lefts("0.jpg", "3") == [3] and lefts("0.jpg", "x") is None


def test_a_photo_of_another_folder_is_another_photo(tmp_path: Path) -> None:
    found = instances(tmp_path, ["val/0.jpg"], [on(0, 1)])
    assert found.of("train/0.jpg", "") is None and found.of("0.jpg", "") and found.of("coco/val/0.png", "")


def test_annotations_that_are_none_are_counted(tmp_path: Path) -> None:
    left_out = LeftOut()
    bad = [None, "x", {**on(0, 1), "bbox": [1, 1, HUGE, 5]}, {**on(0, 1), "bbox": [1, 1, 0, 5]}]
    found = instances(tmp_path, ["0.jpg"], [*bad, on(0, 7)], left_out)
    assert dict(left_out) == {"bad-instance": 4} and len(found.of("0.jpg", "") or ()) == 1


@pytest.mark.parametrize("file", [None, "", 7])
def test_an_image_without_a_file_is_refused(tmp_path: Path, file: Any) -> None:
    with pytest.raises(WrongUse, match=r"instances\.json: .*file_name.*empty or there twice"):
        instances(tmp_path, [file], [on(0, 1)])


@pytest.mark.parametrize("text", ["[]", "{}", '{"images": [], "categories": [], "annotations": [{}]}'])
def test_files_without_instances_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(WrongUse, match=r"instances\.json"):
        Instances(tmp_path / "instances.json", LeftOut())


def test_masks_are_polygons_and_run_lengths() -> None:
    expected = np.zeros((4, 6), np.bool_)
    expected[1:3, 2:5] = True
    runs = [9, 2, 2, 2, 2, 2, 5]
    assert np.array_equal(outline_mask({"size": [4, 6], "counts": runs}, 4, 6), expected)
    assert np.array_equal(outline_mask([[2, 1, 4, 1, 4, 2, 2, 2]], 4, 6), expected)


@pytest.mark.parametrize(
    "outline",
    [
        {"size": [6, 4], "counts": [24]},
        {"size": [4, 6], "counts": [23]},
        {"size": [4, 6], "counts": [25, -1]},
        {"size": [4, 6], "counts": [HUGE, 1]},
        {"size": [4, 6], "counts": "9220003"},
        {"size": [4, 6]},
        {"size": 4, "counts": [24]},
        {"size": True, "counts": [24]},
        [[0, 0, 9, 9, 0, 9]],
        [[0, 0, 4, 0, 4, HUGE]],
        [[0, 0, 4, 0, 4, 4, 1]],
        [[0, 0, 1]],
        [["a"] * 6],
        7,
    ],
)
def test_a_mask_of_another_picture_or_of_none_is_refused(outline: Any) -> None:
    with pytest.raises(BadMask):
        outline_mask(outline, 4, 6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: one.pixels[:-8], "other-size"),
        (lambda one: np.zeros_like(one.pixels), "blank"),
        (lambda one: one.pixels.copy(), "same-image"),
        (lambda one: np.roll(inside(one), 2, axis=1), "moved"),
        (lambda one: cv2.resize(inside(one)[6:-6, 8:-8], (WIDTH, HEIGHT)), "moved"),
        (lambda one: np.where(np.arange(WIDTH)[:, None] > 300, one.pixels + 30, inside(one)), "changed-outside"),
        (lambda one: np.where(one.mask[..., None], one.pixels + 3, one.pixels), "hardly-changed"),
    ],
)
def test_what_an_editor_must_not_do(opened: Opened, change: Callable[[Edit], Pixels], reason: str) -> None:
    assert became(made(opened, change)) == reason


def test_what_lies_outside_is_taken_from_the_photo_after_the_shift_was_measured(opened: Opened) -> None:
    assert became(made(opened, lambda one: inside(one) + np.uint8(12))) == "changed-outside"
    pasted = made(opened, lambda one: inside(one) + np.uint8(12), paste=True)
    assert isinstance(pasted, Pair) and pasted.scores["difference_outside"] == 0
    assert became(made(opened, shifted, paste=True)) == "moved"


def test_the_proof_is_measured_on_the_files_as_stored(opened: Opened) -> None:
    assert Context("twins").encoding.quality == 95
    generator = opened()
    stored: Pixels = generator._stored(photo())
    assert 0 < np.abs(stored.astype(int) - photo()).mean() < 4


CATEGORIES = ("person", "dog", "car", "dining table", "fire hydrant", "hot dog", "knife", "bear", "teddy bear", "bus")
NOUNS = Nouns(names_of(CATEGORIES, vocabulary()))


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "expected"),
    [
        (
            "A small dog on the grass.",
            "A small cat on the grass.",
            "replace",
            Wanted("object", "dog", ("dog",), 1, 0, "a small cat", "replace the dog with a small cat"),
        ),
        (
            "two men near a red fire hydrant",
            "two men near an orange fire hydrant",
            "replace",
            Wanted("attribute", "fire hydrant", ("fire hydrant",), 1, 0, "an orange fire hydrant",
                   "make the fire hydrant orange"),
        ),
        (
            "Four dogs run.",
            "Two dogs run.",
            "replace",
            Wanted("count", "dogs", ("dog",), 4, 2, "", "remove two of the dogs"),
        ),
        (
            "two dogs on a desk",
            "one dog on a desk",
            "replace",
            Wanted("count", "dogs", ("dog",), 2, 1, "", "remove one of the dogs"),
        ),
        (
            "A puppy beside a table.",
            "A puppy without a table beside it.",
            "replace",
            Wanted("removal", "table", ("dining table",), 1, 1, "", "remove the table"),
        ),
        (
            "red buses",
            "blue buses",
            "",
            Wanted("attribute", "buses", ("bus",), 0, 0, "blue buses", "make the buses blue"),
        ),
    ],
)  # fmt: skip
def test_a_change_has_a_noun_a_number_and_words(caption: str, negative: str, kind: str, expected: Wanted) -> None:
    assert wanted(caption, negative, kind, NOUNS) == expected


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "reason"),
    [
        ("A dog.", "A dog next to a harp.", "add", "other-kind"),
        ("A dog.", "A golden dog.", "", "other-kind"),
        ("A dog.", "A dog.", "replace", "other-kind"),
        ("A red car door.", "A blue car door.", "replace", "unknown-noun"),  # the door
        ("A red and white car.", "A blue and white car.", "replace", "unknown-noun"),  # not the whole car
        ("A harp on grass.", "A drum on grass.", "replace", "unknown-noun"),
        ("A hot dog on a bun.", "A hot cat on a bun.", "replace", "unknown-noun"),
        ("Two dogs run.", "Five dogs run.", "replace", "count-raised"),
        ("Two dogs run.", "No cars and two dogs run.", "replace", "unknown-noun"),
        ("A dog and a dog.", "A dog and no dog.", "replace", "unknown-noun"),
        ("one two three four five", "six seven eight nine ten", "replace", "too-much-changed"),
    ],
)
def test_a_change_without_one_place_is_told(caption: str, negative: str, kind: str, reason: str) -> None:
    found = wanted(caption, negative, kind, NOUNS)
    assert (found if isinstance(found, str) else "") == reason


def test_names_are_those_of_the_rules_and_none_of_another_category() -> None:
    names = names_of((*CATEGORIES, ""), vocabulary())
    assert {"table", "desk", "dining table"} <= names["dining table"]
    assert names["hot dog"] == {"hot dog"} and names["teddy bear"] == {"teddy bear"} and "man" in names["person"]
    assert [plural_of(one) for one in ("knife", "fire hydrant", "bus", "puppy", "toy", "man")] == [
        *("knives", "fire hydrants", "buses", "puppies", "toys", "men")
    ]
