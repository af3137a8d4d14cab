"""Edited photos: what is planned, which places are edited, and the proof that only these have changed.

COCO's instances: which photo an annotation is of, its mask, and what is refused.
Which change a negative caption asks for, whose place it is, and why there is none.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.generators.finished_stage import finish, finished
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import LeftOut
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.models.image_engine import Drawn
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor
from twinset_extras.edited_photos.places import BadMask, Instances, outline_mask
from twinset_extras.edited_photos.source import EditedPhotos
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, plural_of, wanted

HEIGHT, WIDTH = 256, 320
LEFT, TOP, SIDE = 40, 60, 48
Opened = Callable[..., Any]


def photo() -> Pixels:
    """Noise in soft spots, as a textured scene, with a red box."""
    spots = np.random.default_rng(0).integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    pixels = np.asarray(cv2.resize(spots, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)) // 2 + 60
    pixels[TOP : TOP + SIDE, LEFT : LEFT + SIDE] = (200, 40, 30)
    return pixels.astype(np.uint8)


def source(folder: Path, **given: Any) -> EditedPhotos:
    places = {"photos": folder / "photos", "instances": folder / "instances.json"}
    whole: dict[str, Any] = {"engine": {"kind": "mylab-fill"}, **places, **given}
    return EditedPhotos(kind="edited-photos", negatives="negatives", **whole)


class Fake(ImageEditor):
    """Gives what a function makes of an edit."""

    version = 1
    micro_batch = 4

    def __init__(self, change: Callable[[Edit], Pixels]) -> None:
        self.change = change

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        for one in edits:
            yield Drawn(one.key, self.change(one), {"fake": True})


def inside(one: Edit) -> Pixels:
    """Another colour in the mask."""
    assert one.mask is not None
    return np.where(one.mask[..., None], np.array((20, 160, 40), np.uint8), one.pixels)


def shifted(one: Edit) -> Pixels:
    return np.roll(inside(one), 2, axis=0)


def made(opened: Opened, change: Callable[[Edit], Pixels], **given: Any) -> Pair | Rejected:
    """What becomes of the first candidate."""
    generator = opened(**given)
    generator.__dict__["worker"] = Fake(change)
    (result,) = generator.make([next(iter(generator.plan()))])
    assert isinstance(result, Pair | Rejected)
    return result


def became(result: Pair | Rejected) -> str:
    """The kind of change of a pair, or the reason of a rejection."""
    return result.reason if isinstance(result, Rejected) else result.change


ROWS = (
    ("0.jpg", "A red car on a road.", "A green car on a road.", "replace", "att"),
    ("0.jpg", "A red car on a road.", "A red bus on a road.", "replace", "obj"),
    ("0.jpg", "A red car on a road.", "A road with no car.", "replace", "obj"),
    ("1.jpg", "Two dogs.", "One dog.", "replace", "att"),
    ("1.jpg", "A dog.", "No dog.", "replace", "obj"),
    ("2.jpg", "A red car.", "A blue car.", "replace", "att"),
    ("", "A red car.", "A blue car.", "replace", "att"),
    ("0.jpg", "A dog.", "A cat.", "replace", "obj"),
)


def replay(folder: Path, stage: str, licence: str) -> None:
    """Finish a stage of the negative captions."""
    captions = (folder / "negatives.json",)
    finish(ReplayedNegatives(kind="replayed-negatives", captions=captions, licence=licence), folder, stage)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number in range(3):
        Image.fromarray(photo()).save(tmp_path / f"photos/{number}.jpg", quality=95)
    box = [LEFT, TOP, SIDE, SIDE]
    corners = [[LEFT, TOP, LEFT + SIDE, TOP, LEFT + SIDE, TOP + SIDE, LEFT, TOP + SIDE]]
    annotations: list[Any] = [
        {"image_id": 7, "category_id": 1, "bbox": box, "segmentation": corners, "iscrowd": 0},
        {"image_id": 8, "category_id": 2, "bbox": [200, 100, 60, 60]},
        {"image_id": 8, "category_id": 2, "bbox": [20, 20, 40, 50], "segmentation": {"size": [9, 9], "counts": [81]}},
        {"image_id": 8, "category_id": 2, "bbox": [0, 0, -1, 5]},
        {"image_id": 99, "category_id": 2, "bbox": box},
    ]
    images = [{"id": 7, "file_name": "0.jpg"}, {"id": 8, "file_name": "1.jpg"}]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}]
    whole = {"images": images, "categories": categories, "annotations": annotations}
    (tmp_path / "instances.json").write_text(json.dumps(whole))
    names = ("image", "caption", "negative_caption", "type", "subtype")
    (tmp_path / "negatives.json").write_text(json.dumps([dict(zip(names, row, strict=True)) for row in ROWS]))
    replay(tmp_path, "negatives", "CC0-1.0")
    return tmp_path


@pytest.fixture
def context(folder: Path) -> Context:
    return Context("twins", earlier=finished(folder, "negatives"))


@pytest.fixture
def opened(folder: Path, context: Context) -> Opened:
    """Opens the generator with some settings."""
    return lambda **given: source(folder, **given).open(context)


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
    for change in (lambda one: inside(one).astype(np.float32), lambda one: inside(one)[..., :1]):
        with pytest.raises(BuildFailed, match=r"^mylab-fill: twins-.* not uint8 \(height, width, 3\)"):
            made(opened, change)


def test_a_place_is_neither_too_small_nor_too_large(folder: Path, opened: Opened) -> None:
    for given, reason in (({"smallest": 0.2}, "place-too-small"), ({"largest": 0.01}, "place-too-large")):
        assert became(made(opened, inside, **given)) == reason
    annotate(folder, 0, {"image_id": 7, "category_id": 1, "bbox": [WIDTH + 0.5, 10, 0.1, 5]})
    assert became(made(opened, inside, smallest=0)) == "place-too-small", "it has no pixel"


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

    alone = instances(tmp_path, ["val/0.jpg"], [on(0, 1)])
    assert alone.of("train/0.jpg", "") is None, "a photo of another folder is another photo"
    assert alone.of("0.jpg", "") and alone.of("coco/val/0.png", "")


def test_annotations_that_are_none_are_counted(tmp_path: Path) -> None:
    left_out = LeftOut()
    bad = [None, "x", {**on(0, 1), "bbox": [1, 1, HUGE, 5]}, {**on(0, 1), "bbox": [1, 1, 0, 5]}]
    found = instances(tmp_path, ["0.jpg"], [*bad, on(0, 7)], left_out)
    assert dict(left_out) == {"bad-instance": 4} and len(found.of("0.jpg", "") or ()) == 1


IMAGE_WITHOUT_A_FILE = '{"images": [{"id": 0, "file_name": ""}], "categories": [], "annotations": [{}]}'


@pytest.mark.parametrize("text", ["[]", '{"images": [], "categories": [], "annotations": [{}]}', IMAGE_WITHOUT_A_FILE])
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
        {"size": True, "counts": [24]},
        [[0, 0, 9, 9, 0, 9]],
        [[0, 0, 4, 0, 4, HUGE]],
        [[0, 0, 4, 0, 4, 4, 1]],
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


CATEGORIES = ("person", "dog", "car", "dining table", "fire hydrant", "hot dog", "knife", "bear", "teddy bear", "bus")
NOUNS = Nouns(names_of(CATEGORIES, vocabulary()))


CHANGES = {
    ("A small dog on the grass.", "A small cat on the grass."): Wanted(
        "object", "dog", ("dog",), 1, 0, "a small cat", "replace the dog with a small cat"
    ),
    ("a man near a red fire hydrant", "a man near an orange fire hydrant"): Wanted(
        "attribute", "fire hydrant", ("fire hydrant",), 1, 0, "an orange fire hydrant", "make the fire hydrant orange"
    ),
    ("Four dogs run.", "Two dogs run."): Wanted("count", "dogs", ("dog",), 4, 2, "", "remove two of the dogs"),
    ("A puppy beside a table.", "A puppy without a table beside it."): Wanted(
        "removal", "table", ("dining table",), 1, 1, "", "remove the table"
    ),
    ("red buses", "blue buses"): Wanted("attribute", "buses", ("bus",), 0, 0, "blue buses", "make the buses blue"),
}


def test_a_change_has_a_noun_a_number_and_words() -> None:
    for captions, expected in CHANGES.items():
        assert wanted(*captions, "replace", NOUNS) == expected, captions


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
def test_a_change_without_one_place_has_a_reason(caption: str, negative: str, kind: str, reason: str) -> None:
    assert wanted(caption, negative, kind, NOUNS) == reason


def test_names_are_those_of_the_rules_and_none_of_another_category() -> None:
    names = names_of((*CATEGORIES, ""), vocabulary())
    assert {"table", "desk", "dining table"} <= names["dining table"]
    assert names["hot dog"] == {"hot dog"} and names["teddy bear"] == {"teddy bear"} and "man" in names["person"]
    assert [plural_of(one) for one in ("knife", "fire hydrant", "bus", "puppy", "toy", "man")] == [
        *("knives", "fire hydrants", "buses", "puppies", "toys", "men")
    ]
