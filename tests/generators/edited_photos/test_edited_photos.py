"""Edited photos: places from annotations, what is planned, and the proof that only the place has changed."""

import base64
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.generators.finished_stage import finish, finished
from tests.models.images_server.test_images_server import png, reply, settings
from tests.models.language_models.chat_server import Body, Reply, serving
from twinset.generators.contract import check_source
from twinset.generators.edited_photos.places import BadMask, Instances, outline_mask
from twinset.generators.edited_photos.source import EditedPhotos
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.models.image_editor import Edit, ImageEditor
from twinset.models.image_engine import Drawn
from twinset.shards.contracts import Context, LeftOut
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Pixels, Rejected

HEIGHT, WIDTH = 256, 320
LEFT, TOP, SIDE = 40, 60, 48
ROWS = (
    ("0.jpg", "A red car on a road.", "A green car on a road.", "replace", "att"),
    ("0.jpg", "A red car on a road.", "A red bus on a road.", "replace", "obj"),
    ("0.jpg", "A red car on a road.", "A road with no car.", "negate", "obj"),
    ("1.jpg", "Two dogs.", "One dog.", "replace", "att"),
    ("1.jpg", "A dog.", "No dog.", "negate", "obj"),
    ("2.jpg", "A red car.", "A blue car.", "replace", "att"),
    ("", "A red car.", "A blue car.", "replace", "att"),
    ("0.jpg", "A dog.", "A cat.", "replace", "obj"),
)
EXCLUDED = {"other-number": 1, "not-annotated": 1, "no-photo": 1, "not-in-photo": 1, "bad-instance": 2}


def photo() -> Pixels:
    """Noise in soft spots, as a textured scene, with a red box."""
    spots = np.random.default_rng(0).integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    pixels = np.asarray(cv2.resize(spots, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)) // 2 + 60
    pixels[TOP : TOP + SIDE, LEFT : LEFT + SIDE] = (200, 40, 30)
    return pixels.astype(np.uint8)


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
    replayed = ReplayedNegatives(kind="replayed-negatives", captions=(tmp_path / "negatives.json",), licence="CC0-1.0")
    finish(replayed, tmp_path, "negatives")
    return tmp_path


@pytest.fixture
def earlier(folder: Path) -> Callable[[str], FinishedStage]:
    return finished(folder, "negatives")


def source(folder: Path, **given: Any) -> EditedPhotos:
    places = {"photos": folder / "photos", "instances": folder / "instances.json"}
    whole: dict[str, Any] = {"engine": {"kind": "simple"}, **places, **given}
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


def made(
    folder: Path, earlier: Callable[[str], FinishedStage], change: Callable[[Edit], Pixels], **given: Any
) -> Pair | Rejected:
    """What becomes of the first candidate."""
    generator = source(folder, **given).open(Context("twins", earlier=earlier))
    generator.engine = Fake(change)  # type: ignore[attr-defined]
    first = next(iter(generator.plan()))
    (result,) = generator.make([first])
    assert isinstance(result, Pair | Rejected)
    return result


def test_the_contract_is_kept_and_what_has_no_place_is_counted(
    folder: Path, earlier: Callable[[str], FinishedStage]
) -> None:
    check_source(source(folder), Context("twins", earlier=earlier))
    generator = source(folder).open(Context("twins", earlier=earlier))
    planned = list(generator.plan())
    assert [one.counted_as for one in planned] == ["attribute", "object", "removal", "count"]
    assert dict(generator.excluded) == EXCLUDED
    results: list[Any] = list(generator.make(planned))
    assert [one.reason if isinstance(one, Rejected) else one.change for one in results] == [
        *("attribute", "cannot-paint", "removal", "bad-mask")  # the smaller dog goes, whose mask is of another picture
    ]
    pair = results[0]
    assert isinstance(pair, Pair) and pair.captions1 == ("A green car on a road.",)
    assert pair.provenance["phrase"] == "a green car"
    assert (pair.image0.source.path, pair.image1.source.path) == ("0.jpg", "editor://simple/")
    assert pair.provenance["box"] == {"left": LEFT - 4, "top": TOP - 4, "width": SIDE + 9, "height": SIDE + 9}
    middle = pair.image1.pixels[TOP + 20, LEFT + 20].astype(int)
    assert middle[1] > 50 + max(middle[0], middle[2]), "the box is green"
    assert pair.scores["shift"] == 0 and pair.scores["difference_outside"] == 0 and pair.scores["ssim_outside"] == 1


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
def test_what_an_editor_must_not_do(
    folder: Path, earlier: Callable[[str], FinishedStage], change: Callable[[Edit], Pixels], reason: str
) -> None:
    result = made(folder, earlier, change)
    assert isinstance(result, Rejected) and result.reason == reason


def test_what_lies_outside_is_taken_from_the_photo_after_the_shift_was_measured(
    folder: Path, earlier: Callable[[str], FinishedStage]
) -> None:
    noisy = made(folder, earlier, lambda one: inside(one) + np.uint8(12))
    assert isinstance(noisy, Rejected) and noisy.reason == "changed-outside"
    pasted = made(folder, earlier, lambda one: inside(one) + np.uint8(12), paste=True)
    assert isinstance(pasted, Pair) and pasted.scores["difference_outside"] == 0
    shifted = made(folder, earlier, lambda one: np.roll(inside(one), 2, axis=0), paste=True)
    assert isinstance(shifted, Rejected) and shifted.reason == "moved"


def shifted(one: Edit) -> Pixels:
    return np.roll(inside(one), 2, axis=0)


def test_another_seed_is_tried_and_the_last_failed_edit_is_kept_with_the_pair(
    folder: Path, earlier: Callable[[str], FinishedStage]
) -> None:
    seeds: list[int] = []

    def third_is_right(one: Edit) -> Pixels:
        seeds.append(one.seed)
        return [one.pixels, shifted(one), inside(one)][len(seeds) - 1]

    pair = made(folder, earlier, third_is_right, tries=4)
    assert isinstance(pair, Pair) and len(set(seeds)) == 3 and pair.provenance["seed"] == seeds[2]
    failed: Any = pair.provenance["failed"]
    assert (failed["reason"], failed["seed"]) == ("moved", seeds[1])
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(failed["image"]))))
    assert np.abs(shown.astype(int) - np.roll(pair.image1.pixels, 2, axis=0)).mean() < 5
    # The first try is that of a stage with one.
    seeds.clear()
    assert isinstance(rejected := made(folder, earlier, third_is_right), Rejected) and rejected.reason == "same-image"
    alone, _ = seeds[0], seeds.clear()
    at_once = made(folder, earlier, lambda one: seeds.append(one.seed) or inside(one), tries=2)  # type: ignore[func-returns-value]
    assert isinstance(at_once, Pair) and seeds == [alone]
    assert at_once.provenance["failed"] == {"reason": "", "seed": 0, "image": ""}
    assert "failed" not in made(folder, earlier, inside).provenance  # type: ignore[union-attr]


def test_what_no_try_proves_is_rejected_once_and_what_the_editor_refuses_is_not_tried_again(
    folder: Path, earlier: Callable[[str], FinishedStage]
) -> None:
    seeds: list[int] = []
    result = made(folder, earlier, lambda one: seeds.append(one.seed) or shifted(one), tries=3)  # type: ignore[func-returns-value]
    assert isinstance(result, Rejected) and result.reason == "moved" and len(set(seeds)) == 3

    check_source(source(folder, tries=3), Context("twins", earlier=earlier))
    generator: Any = source(folder, tries=3).open(Context("twins", earlier=earlier))
    planned, plain = list(generator.plan()), source(folder).open(Context("twins", earlier=earlier))
    asked: list[str] = []
    edit = generator.engine.edit
    generator.engine.edit = lambda edits: asked.extend(one.key for one in edits) or edit(edits)
    kept, wanted = list(generator.make(planned)), list(plain.make(planned))
    assert [type(one) for one in kept] == [type(one) for one in wanted] and len(asked) == len({*asked}) == 3
    assert [one.reason for one in kept if isinstance(one, Rejected)] == ["cannot-paint", "bad-mask"]

    generator.engine = Fake(lambda one: inside(one) if one.seed % 2 else shifted(one))

    def told(results: list[Any]) -> list[Any]:
        return [(one.key, one.provenance if isinstance(one, Pair) else one.reason) for one in results]

    alone = [result for one in planned for result in generator.make([one])]
    assert told(list(generator.make(planned))) == told(alone) and isinstance(alone[0], Pair)


def test_an_editor_that_gives_other_results_is_named(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    generator: Any = source(folder).open(Context("twins", earlier=earlier))
    generator.engine = Fake(inside)
    generator.engine.edit = lambda edits: iter(())
    with pytest.raises(BuildFailed, match=r"^simple: gives no result for twins-"):
        list(generator.make(list(generator.plan())))
    for other in (lambda one: inside(one).astype(np.float32), lambda one: inside(one)[..., :1]):
        with pytest.raises(BuildFailed, match=r"^simple: twins-.* not uint8 \(height, width, 3\); correct its package"):
            made(folder, earlier, other)


def test_a_place_without_a_pixel_is_too_small(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    file = folder / "instances.json"
    beside = {"image_id": 7, "category_id": 1, "bbox": [WIDTH + 0.5, 10, 0.1, 5]}
    file.write_text(json.dumps({**json.loads(file.read_text()), "annotations": [beside]}))
    result = made(folder, earlier, lambda one: one.pixels ^ 1, smallest=0)
    assert isinstance(result, Rejected) and result.reason == "place-too-small"


def test_a_place_is_neither_too_small_nor_too_large(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    for given, reason in (({"smallest": 0.2}, "place-too-small"), ({"largest": 0.01}, "place-too-large")):
        result = made(folder, earlier, inside, **given)
        assert isinstance(result, Rejected) and result.reason == reason


def test_a_place_holds_little_of_another_instance(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    file = folder / "instances.json"
    whole = json.loads(file.read_text())
    beside = {"image_id": 7, "category_id": 2, "bbox": [LEFT + SIDE // 2, TOP, SIDE, SIDE]}
    file.write_text(json.dumps({**whole, "annotations": [*whole["annotations"], beside]}))
    result = made(folder, earlier, inside)
    assert isinstance(result, Rejected) and (result.reason, result.detail[:2]) == ("place-shared", "0.")
    assert isinstance(made(folder, earlier, inside, shared=0.9), Pair)


def test_the_proof_is_measured_on_the_files_as_stored(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    assert Context("twins").encoding.quality == 95
    generator = source(folder).open(Context("twins", earlier=earlier))
    stored: Pixels = generator._stored(photo())  # type: ignore[attr-defined]
    assert 0 < np.abs(stored.astype(int) - photo()).mean() < 4


def test_a_detector_says_where_things_are(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    detector = {"model": str(folder), "device": "cpu"}
    generator: Any = source(folder, instances=None, detector=detector).open(Context("twins", earlier=earlier))
    assert generator.isolation == "process" and generator.device() == "cpu"
    planned = list(generator.plan())
    assert [one.category for one in planned] == ["car"] * 3 + ["dog"] * 3 + ["car"]
    box = (float(LEFT), float(TOP), float(SIDE), float(SIDE))
    generator.detector.boxes = lambda pixels, noun: {"car": [box], "dog": [box, box, box]}[noun]
    results = list(generator.make(planned[:4]))
    assert [one.reason if isinstance(one, Rejected) else one.change for one in results] == [
        *("attribute", "cannot-paint", "removal", "other-number")
    ]
    with pytest.raises(ValueError, match="name one of the two"):
        source(folder, detector=detector)


def test_photos_without_derivatives_are_counted(folder: Path) -> None:
    replayed = ReplayedNegatives(
        kind="replayed-negatives", captions=(folder / "negatives.json",), licence="CC-BY-ND-4.0"
    )
    finish(replayed, folder, "closed")
    generator = source(folder).open(Context("twins", earlier=finished(folder, "closed")))
    assert not list(generator.plan()) and generator.excluded["no-derivatives"] == len(ROWS)
    allowed = source(folder, allow_no_derivatives=True).open(Context("twins", earlier=finished(folder, "closed")))
    assert len(list(allowed.plan())) == 4


def test_masks_are_polygons_and_run_lengths() -> None:
    expected = np.zeros((4, 6), np.bool_)
    expected[1:3, 2:5] = True
    runs = [9, 2, 2, 2, 2, 2, 5]
    assert np.array_equal(outline_mask({"size": [4, 6], "counts": runs}, 4, 6), expected)
    # As pycocotools packs them: the third and later runs less the one two places before, five bits a sign.
    assert np.array_equal(outline_mask({"size": [4, 6], "counts": "9220003"}, 4, 6), expected)
    assert np.array_equal(outline_mask([[2, 1, 4, 1, 4, 2, 2, 2]], 4, 6), expected)


@pytest.mark.parametrize(
    "outline",
    [
        {"size": [6, 4], "counts": [24]},
        {"size": [4, 6], "counts": [23]},
        {"size": [4, 6], "counts": [25, -1]},
        {"size": [4, 6]},
        {"size": [4, 6], "counts": "\x00"},
        [[0, 0, 9, 9, 0, 9]],
        [[0, 0, 1]],
        [["a"] * 6],
        7,
    ],
)
def test_a_mask_of_another_picture_is_refused(outline: Any) -> None:
    with pytest.raises(BadMask):
        outline_mask(outline, 4, 6)


@pytest.mark.parametrize("text", ["[]", "{}", '{"images": [], "categories": [], "annotations": [{}]}'])
def test_files_without_instances_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(WrongUse, match=r"instances\.json"):
        Instances(tmp_path / "instances.json", LeftOut())


def test_a_server_edits_and_what_it_gives_is_proved(folder: Path, earlier: Callable[[str], FinishedStage]) -> None:
    def editing(body: Body, number: int) -> Reply:
        photo, mask = (np.array(Image.open(io.BytesIO(base64.b64decode(body[name])))) for name in ("image", "mask"))
        green = np.where(mask[..., 3:] == 0, np.array((20, 160, 40), np.uint8), photo)
        return reply(png([green, np.zeros_like(photo), photo[:99]][number]))

    with serving(editing) as server:
        engine = settings(server.url, folder / "answers", concurrency=1)
        generator = source(folder, engine=engine).open(Context("twins", earlier=earlier))
        for _ in range(2):  # once by the server, once by what is kept
            results: list[Any] = list(generator.make(list(generator.plan())))
            assert [one.reason if isinstance(one, Rejected) else one.change for one in results] == [
                *("attribute", "blank", "other-size", "bad-mask")
            ]
        assert len(server.bodies) == 3
