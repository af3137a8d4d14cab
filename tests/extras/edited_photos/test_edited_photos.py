"""Edited photos: which change a negative caption asks for, whose place it is, and that nothing else has changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.extras.parts import Filler
from tests.generators.finished_stage import finish, finished
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import LeftOut
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.models.image_engine import Drawn
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.image_editor import Edit
from twinset_extras.edited_photos.places import BadMask, Instances, outline_mask
from twinset_extras.edited_photos.source import EditedPhotos
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, wanted

HUGE = 10**400
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


def inside(edit: Edit) -> Pixels:
    """Another colour in the mask."""
    assert edit.mask is not None
    return np.where(edit.mask[..., None], np.array((20, 160, 40), np.uint8), edit.pixels)


def made(opened: Opened, change: Callable[[Edit], Pixels], **given: Any) -> Pair | Rejected:
    """What becomes of the first candidate."""
    generator, editor = opened(**given), Filler()
    generator.__dict__["worker"] = editor
    editor.edit = lambda edits: (Drawn(edit.key, change(edit), {}) for edit in edits)  # type: ignore[method-assign]
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
        {"image_id": 8, "category_id": 2, "bbox": [1, 1, HUGE, 5]},
        None,
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


EXCLUDED = {"other-number": 1, "not-annotated": 1, "no-photo": 1, "not-in-photo": 1, "bad-instance": 4}


def annotate(folder: Path, kept: int, added: dict[str, Any]) -> None:
    """Keep the first annotations, and add one."""
    file = folder / "instances.json"
    whole = json.loads(file.read_text())
    file.write_text(json.dumps({**whole, "annotations": [*whole["annotations"][:kept], added]}))


def test_the_contract_is_kept_and_what_has_no_place_is_counted(folder: Path, context: Context, opened: Opened) -> None:
    check_source(source(folder), context)
    generator = opened()
    planned = list(generator.plan())
    assert [candidate.counted_as for candidate in planned] == ["attribute", "object", "removal", "count"]
    assert dict(generator.excluded) == EXCLUDED
    results = list(generator.make(planned))
    # The smaller dog goes, whose mask is of another picture.
    assert [became(result) for result in results] == ["attribute", "object", "removal", "bad-mask"]
    pair = results[0]
    assert isinstance(pair, Pair) and pair.captions1 == ("A green car on a road.",)
    assert pair.provenance["phrase"] == "a green car"
    assert (pair.image0.source.path, pair.image1.source.path) == ("0.jpg", "editor://mylab-fill/")
    assert pair.provenance["box"] == {"left": LEFT - 4, "top": TOP - 4, "width": SIDE + 9, "height": SIDE + 9}
    assert pair.scores["shift"] == 0 and pair.scores["difference_outside"] == 0 and pair.scores["ssim_outside"] == 1


def test_an_editor_that_gives_other_results_is_named(opened: Opened) -> None:
    generator = opened()
    generator.__dict__["worker"] = editor = Filler()
    editor.edit = lambda edits: iter(())  # type: ignore[method-assign]
    with pytest.raises(BuildFailed, match=r"^mylab-fill: gives no result for twins-"):
        list(generator.make(list(generator.plan())))
    for change in (lambda edit: inside(edit).astype(np.float32), lambda edit: inside(edit)[..., :1]):
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


def test_photos_without_derivatives_are_counted(folder: Path, context: Context) -> None:
    """Negative captions copied from a release state no licence; COCO's instances state those of the photos."""
    replay(folder, "closed", "CC-BY-ND-4.0")
    closed = source(folder).open(Context("twins", earlier=finished(folder, "closed")))
    assert not list(closed.plan()) and closed.excluded["no-derivatives"] == len(ROWS)
    file = folder / "instances.json"
    whole = json.loads(file.read_text())
    whole["licenses"] = [{"id": 6, "name": "", "url": "http://creativecommons.org/licenses/by-nd/2.0/"}]
    whole["images"][0] |= {"license": 6, "flickr_url": "http://f.example/1"}
    file.write_text(json.dumps(whole))
    generator = source(folder).open(context)
    assert {edit.photo for edit in generator.plan()} == {"1.jpg"} and generator.excluded["no-derivatives"] == 4
    allowed = source(folder, allow_no_derivatives=True).open(context)
    terms = {edit.photo: (edit.licence, edit.source_url) for edit in allowed.plan()}
    assert terms == {"0.jpg": ("CC-BY-ND-2.0 AND CC0-1.0", "http://f.example/1"), "1.jpg": ("CC0-1.0", "")}


def instances(folder: Path, *files: str) -> Instances:
    """One annotation a file, as far to the left as its number says."""
    images = [{"id": number, "file_name": file} for number, file in enumerate(files)]
    places = [{"image_id": number, "category_id": 1, "bbox": [number, 0, 5, 5]} for number, _ in enumerate(files)]
    whole = {"images": images, "categories": [{"id": 1, "name": "Cup"}], "annotations": places}
    (folder / "instances.json").write_text(json.dumps(whole))
    return Instances(folder / "instances.json", LeftOut())


def test_a_name_of_a_file_comes_before_a_number(tmp_path: Path) -> None:
    held = instances(tmp_path, "1.jpg", "2.jpg", "train/0.jpg", "val/0.jpg")
    lefts = {
        ("1.jpg", ""): 0, ("a/2.jpg", ""): 1, ("train/0.jpg", ""): 2, ("val/0.jpg", ""): 3, ("val/1.jpg", "x"): 0,
        ("0.jpg", "3"): 3,
    }  # fmt: skip
    for photo, left in lefts.items():
        assert [place.box[0] for place in held.of(*photo) or ()] == [left], photo
    assert held.of("0.jpg", "x") is None
    alone = instances(tmp_path, "val/0.jpg")
    assert alone.of("train/0.jpg", "") is None, "a photo of another folder is another photo"
    assert alone.of("0.jpg", "") and alone.of("coco/val/0.png", "")


def test_masks_are_polygons_and_run_lengths() -> None:
    expected = np.zeros((4, 6), np.bool_)
    expected[1:3, 2:5] = True
    runs = [9, 2, 2, 2, 2, 2, 5]
    assert np.array_equal(outline_mask({"size": [4, 6], "counts": runs}, 4, 6), expected)
    assert np.array_equal(outline_mask([[2, 1, 4, 1, 4, 2, 2, 2]], 4, 6), expected)


def test_a_mask_of_another_picture_or_of_none_is_refused() -> None:
    bad: list[Any] = [[[0, 0, 9, 9, 0, 9]], [[0, 0, 4, 0, 4, HUGE]], [[0, 0, 4, 0, 4, 4, 1]], 7]
    bad += [{"size": [4, 6], "counts": counts} for counts in ([23], [25, -1], [HUGE, 1], "9220003")]
    for outline in (*bad, {"size": [6, 4], "counts": [24]}):
        with pytest.raises(BadMask):
            outline_mask(outline, 4, 6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda edit: edit.pixels[:-8], "other-size"),
        (lambda edit: np.zeros_like(edit.pixels), "blank"),
        (lambda edit: edit.pixels.copy(), "same-image"),
        (lambda edit: np.roll(inside(edit), 2, axis=1), "moved"),
        (lambda edit: cv2.resize(inside(edit)[6:-6, 8:-8], (WIDTH, HEIGHT)), "moved"),
        (lambda edit: np.where(np.arange(WIDTH)[:, None] > 300, edit.pixels + 30, inside(edit)), "changed-outside"),
        (lambda edit: np.where(edit.mask[..., None], edit.pixels + 3, edit.pixels), "hardly-changed"),
    ],
)
def test_what_an_editor_must_not_do(opened: Opened, change: Callable[[Edit], Pixels], reason: str) -> None:
    assert became(made(opened, change)) == reason


def test_what_lies_outside_is_taken_from_the_photo_after_the_shift_was_measured(opened: Opened) -> None:
    assert became(made(opened, lambda edit: inside(edit) + np.uint8(12))) == "changed-outside"
    pasted = made(opened, lambda edit: inside(edit) + np.uint8(12), paste=True)
    assert isinstance(pasted, Pair) and pasted.scores["difference_outside"] == 0
    assert became(made(opened, lambda edit: np.roll(inside(edit), 2, axis=0), paste=True)) == "moved"


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
    ("Two knives.", "One knife."): Wanted("count", "knives", ("knife",), 2, 1, "", "remove one of the knives"),
    ("A car.", "A red bus."): Wanted("object", "car", ("car",), 1, 0, "a red bus", "replace the car with a red bus"),
    ("A teddy bear.", "A toy car."): Wanted(
        "object", "teddy bear", ("teddy bear",), 1, 0, "a toy car", "replace the teddy bear with a toy car"
    ),
}


def test_a_change_has_a_noun_a_number_and_words() -> None:
    for captions, expected in CHANGES.items():
        assert wanted(*captions, "replace", NOUNS) == expected, captions


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "reason"),
    [
        ("A dog.", "A dog next to a harp.", "add", "other-kind"),
        ("A dog.", "A dog.", "replace", "other-kind"),
        ("A red car door.", "A blue car door.", "replace", "unknown-noun"),  # the door
        ("A red and white car.", "A blue and white car.", "replace", "unknown-noun"),  # not the whole car
        ("A harp on grass.", "A drum on grass.", "replace", "unknown-noun"),
        ("Two dogs run.", "Five dogs run.", "replace", "count-raised"),
        ("Two dogs run.", "No cars and two dogs run.", "replace", "unknown-noun"),
        ("one two three four five", "six seven eight nine ten", "replace", "too-much-changed"),
    ],
)
def test_a_change_without_one_place_has_a_reason(caption: str, negative: str, kind: str, reason: str) -> None:
    assert wanted(caption, negative, kind, NOUNS) == reason
