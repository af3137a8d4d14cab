"""GeneCIS's four tasks, made of the demo's annotations; its own templates of Change an Object; crops."""

import json
import tarfile
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image

from tests.generators.made_inputs import saved
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.annotations import (
    condition_name,
    crop,
    read_instances,
    read_scenes,
    read_taxonomy,
)
from twinset.generators.galleries.source import (
    AttributeTemplates,
    ObjectTemplates,
    Templates,
)
from twinset.shards.contracts import Context
from twinset_demo import MINIATURE

# Rules that every template of GeneCIS keeps (A.1), checked on its JSON, published or made here. They say nothing of how
# templates are made, and share no code with it.

#: Of a gallery of 15: the first are near the reference, or another object; the last five are far, or the same object.
FIRST = 9

Entry = Mapping[str, Any]


def image_of(entry: Entry) -> str:
    """Id of the image of an entry, of COCO or Visual Genome."""
    return str(entry["val_image_id"] if "val_image_id" in entry else entry["image_id"])


def shown(template: Entry) -> list[Entry]:
    """Reference, target and gallery."""
    return [template["reference"], template["target"], *template["gallery"]]


def problems(templates: Sequence[Entry], distractors: int, conditions: Collection[str]) -> list[tuple[int, str]]:
    """Number and broken rule of all templates of one file. distractors: 9 or 14 images (Table 1)."""
    broken_rules, asked = [], set[tuple[str, ...]]()
    for number, template in enumerate(templates):
        reference, target, *gallery = map(image_of, shown(template))
        places = [f"{image_of(entry)} {entry.get('instance_id', '')}" for entry in shown(template)[:2]]
        question = (*places, template["condition"])
        rules = {
            "gallery-size": len(gallery) != distractors,
            "reference-again": reference == target or reference in gallery,
            "target-again": target in gallery,  # a second right answer
            "distractor-again": len(set(gallery)) < len(gallery),
            "condition": template["condition"] not in conditions,
            "template-again": question in asked,
        }
        asked.add(question)
        broken_rules += [(number, rule) for rule, is_broken in rules.items() if is_broken]
    return broken_rules


def check_objects(templates: Sequence[Entry], categories: Mapping[str, frozenset[str]], change: bool) -> None:
    """Rules of both tasks of objects. categories: of each image."""
    assert problems(templates, 14, {*chain(*categories.values())}) == []
    last: dict[str, int] = {}  # reference -> categories that it shares with its last target
    for template in templates:
        images = [image_of(entry) for entry in shown(template)]
        reference, target, *gallery = (categories[image] for image in images)
        condition, near, far = template["condition"], gallery[:FIRST], gallery[FIRST:]
        assert len(reference) >= 10
        assert (condition in reference) != change
        assert all(len(image & reference) >= 6 and not reference <= image for image in (target, *near))
        assert all(len(image & reference) <= 2 for image in far)
        assert not any(condition in image for image in near)
        assert all(condition in image for image in (target, *far))
        # A later target of a reference is never more similar than the one before.
        shared = len(target & reference)
        assert not change or shared <= last.get(images[0], shared)
        last[images[0]] = shared


def check_attributes(templates: Sequence[Entry], records: Sequence[Entry], change: bool) -> None:
    """Rules of both tasks of attributes. records: VAW's."""
    conditions = {*chain(*TAXONOMY.values())} if change else {*TAXONOMY} - {"state"}  # no clear visual category
    assert problems(templates, 14 if change else 9, conditions) == []
    by_id = {str(record["instance_id"]): record for record in records}
    by_image = defaultdict[str, list[Entry]](list)
    for record in records:
        by_image[image_of(record)].append(record)

    def has(record: Entry) -> set[str]:
        return {*record["positive_attributes"]}

    def words(record: Entry) -> set[str]:
        return {word.removesuffix("s") for word in record["object_name"].split()}

    for template in templates:
        reference, target, *gallery = (by_id[str(entry["instance_id"])] for entry in shown(template))
        name, kind = template["condition"], reference["object_name"]
        right = {name} if change else {*TAXONOMY[name]} & has(reference)
        same = [target, *gallery[FIRST:]] if change else [target, *gallery]
        lacking = [reference, *gallery[FIRST:]] if change else gallery
        assert all(record["object_name"] == kind for record in same)
        shared = right & has(target)
        assert any(all(own in record["negative_attributes"] for record in lacking) for own in shared)
        if change:
            types = [{*attributes} & has(reference) for attributes in TAXONOMY.values() if name in attributes]
            assert not all(attributes & has(target) for attributes in types if attributes)
            assert all(name in has(record) and not words(record) & words(reference) for record in gallery[:FIRST])
        else:
            assert not any(right & has(record) for record in gallery), "a second right answer"
        # No image of a distractor shows the reference's object with an attribute that makes an answer right.
        beside = [instance for record in gallery for instance in by_image[image_of(record)]]
        assert not any(instance["object_name"] == kind and right & has(instance) for instance in beside)


TASKS: tuple[Literal["focus", "change"], ...] = ("focus", "change")

STILLS = MINIATURE / "stills"
RECORDS = json.loads((STILLS / "vaw.json").read_text())
#: An attribute can have two types.
TAXONOMY = {**json.loads((STILLS / "attribute_types.json").read_text()), "tone": ["black", "white", "grey"]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The annotations and the images."""
    root = tmp_path_factory.mktemp("genecis")
    saved(root / "panoptic.json", scenes())
    saved(root / "vaw.json", RECORDS)
    saved(root / "types.json", TAXONOMY)
    with tarfile.open(STILLS / "images/stills.tar") as tar:
        tar.extractall(root / "images")
    return root


def scenes(images: int = 208) -> dict[str, Any]:
    """The first of the scenes; one shows a category on exactly one per cent, which is not more."""
    whole: dict[str, Any] = json.loads((STILLS / "panoptic.json").read_text())
    whole["annotations"][0]["segments_info"][-1]["area"] = 320 * 240 // 100
    return {**whole, "images": whole["images"][:images], "annotations": whole["annotations"][:images]}


def source(root: Path, kind: str, task: Any, **more: Any) -> Templates:
    files = {
        "annotations": root / ("panoptic.json" if kind == "object" else "vaw.json"),
        "media": root / "images",
        **more,
    }
    if kind == "attribute":
        files["taxonomy"] = root / "types.json"
    made = (ObjectTemplates if kind == "object" else AttributeTemplates)(kind=f"genecis-{kind}s", task=task, **files)
    return made.open(Context(f"{task}-{kind}", seed=1))


def categories(annotations: Path) -> dict[str, frozenset[str]]:
    """What each image shows, counted from the annotations."""
    whole, shown_in = json.loads(annotations.read_text()), {}
    names = {category["id"]: condition_name(category["name"]) for category in whole["categories"]}
    for annotation in whole["annotations"]:
        pixels = Counter[str]()  # all segments of a category count together
        for segment in annotation["segments_info"]:
            pixels[names[segment["category_id"]]] += segment["area"]
        present = {name for name, area in pixels.items() if area > 320 * 240 / 100}
        shown_in[str(annotation["image_id"])] = frozenset(present)
    return shown_in


@pytest.mark.parametrize("kind", ["object", "attribute"])
@pytest.mark.parametrize("task", TASKS)
def test_every_rule_holds_of_what_is_made(root: Path, kind: str, task: str) -> None:
    made = [json.loads(planned.entry) for planned in islice(source(root, kind, task).templates(), 400)]
    assert len(made) > 200
    if kind == "attribute":
        check_attributes(made, RECORDS, task == "change")
        return
    check_objects(made, categories(root / "panoptic.json"), task == "change")
    references = [entry["reference"]["val_image_id"] for entry in made[:150]]
    again = next(number for number, reference in enumerate(references) if reference in references[:number])
    assert {*references} == {*references[:again]}, "references take turns"


@pytest.mark.parametrize("task", TASKS)
def test_what_cannot_be_a_reference_is_counted(root: Path, tmp_path: Path, task: str) -> None:
    lonely = saved(tmp_path / "lonely.json", scenes(30))  # no nine near ones
    templates = source(root, "object", task, annotations=lonely)
    with pytest.raises(WrongUse, match=r"lonely\.json: no template of .* can be made .*take the whole of a split"):
        list(templates.plan())
    few_categories = sum(len(names) < 10 for names in categories(lonely).values())
    assert templates.excluded["reference-few-categories"] == few_categories
    assert templates.excluded["reference-without-gallery"] > 0


def test_change_needs_another_object_and_a_target_that_differs_from_the_reference(root: Path, tmp_path: Path) -> None:
    def made(target: str = "red", car: str = "car") -> int:
        shown = [("cup", target), *[("cup", "green")] * 6, *[("car", "red")] * 8, (car, "red")]
        records = [
            {**RECORDS[0], "image_id": number, "instance_id": number, "object_name": name}
            | {"positive_attributes": colours.split(), "negative_attributes": ["red"] if colours == "green" else []}
            for number, (name, colours) in enumerate(shown)
        ]
        few = saved(tmp_path / "few.json", records)
        return len([*source(root, "attribute", "change", annotations=few).templates()])

    assert made() == 6
    assert made(car="red cups") == 0
    assert made(target="red green") == 0, "as green as its references"


def test_a_missing_image_and_a_box_outside_reject_their_templates(root: Path, tmp_path: Path) -> None:
    absent = source(root, "object", "focus", media=tmp_path)
    (rejected,) = absent.make(list(islice(absent.plan(), 1)))
    assert isinstance(rejected, Rejected) and rejected.reason == "missing-media"
    records = [{**record, "instance_bbox": [320.0, 1.0, 5.0, 5.0]} for record in RECORDS]
    outside = source(root, "attribute", "focus", annotations=saved(tmp_path / "vaw.json", records))
    (rejected,) = outside.make(list(islice(outside.plan(), 1)))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "box-outside" and rejected.media is None and "320 x 240" in rejected.detail


def test_wrong_entries_are_left_out_with_their_place(tmp_path: Path) -> None:
    """The annotation of an image that is left out goes with it."""
    for place, field, value, left_out in (
        ("images", "file_name", "../5.jpg", 2),
        ("annotations", "segments_info", [{"category_id": 9999, "area": 1}], 1),
    ):
        whole, excluded = scenes(3), LeftOut()
        whole[place][1][field] = value
        assert len(read_scenes(saved(tmp_path / "broken.json", whole), excluded).pictures) == 2
        assert excluded.examples[0][1].startswith(f"broken.json {place}[1] ") and sum(excluded.values()) == left_out


ONE: dict[str, Any] = {
    "image_id": 7,  # a number, as VAW's description says
    "instance_id": "8",
    "instance_bbox": [-1, 2, 30, 4.5],
    "object_name": " Train  Car",
    "positive_attributes": ["Red", "shiny", "blue"],
    "negative_attributes": ["blue", "green", "odd"],
}


def test_names_are_words_and_instances_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    second, excluded = {**ONE, "instance_id": "9"}, LeftOut()
    broken = [{**second, "image_id": "../7"}, {**second, "instance_bbox": [1, 2, 3, float("nan")]}]
    (car,) = read_instances(saved(tmp_path / "val.json", [ONE, "text", ONE, *broken]), TAXONOMY, excluded)
    assert (car.id, car.image, car.object_name, car.box) == ("8", "7", "train car", (-1.0, 2.0, 30.0, 4.5))
    assert (car.positive, car.negative) == (("red",), ("green",)), "contradictions are not believed"
    assert all(excluded[f"attribute-{reason}"] for reason in ("unknown", "contradicted"))
    assert excluded["instance-malformed"] == 4
    assert read_taxonomy(saved(tmp_path / "types.json", TAXONOMY))["tone"] == ("black", "grey", "white")
    with pytest.raises(WrongUse, match=r"val\.json.* VAW file"):
        read_instances(saved(tmp_path / "val.json", []), TAXONOMY, LeftOut())


WIDTH, HEIGHT = 90, 60
PIXELS = np.random.default_rng(0).integers(1, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)  # no black but the padding


@pytest.mark.parametrize("published", [False, True])
def test_crops_are_what_pillow_cuts_out(published: bool) -> None:
    """0.35 of the box to each side; published, as the released evaluation does: 0.7 to the left and the top, the rest
    measured from the new corner. Padded around the middle."""
    random = np.random.default_rng(1)
    for _ in range(300):
        x, width = random.uniform(0, WIDTH - 1), random.uniform(1, WIDTH)
        y, height = random.uniform(0, HEIGHT - 1), random.uniform(1, HEIGHT)
        if published:
            left, top = max(0, x - 0.7 * width), max(0, y - 0.7 * height)
            right, bottom = left + (1 + 0.7) * width, top + (1 + 0.7) * height
        else:
            left, top = max(0, x - 0.35 * width), max(0, y - 0.35 * height)
            right, bottom = x + (1 + 0.35) * width, y + (1 + 0.35) * height
        cut = Image.fromarray(PIXELS).crop((left, top, min(WIDTH, right), min(HEIGHT, bottom)))
        side = max(cut.size)
        square = Image.new("RGB", (side, side))
        square.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
        assert np.array_equal(crop(PIXELS, (x, y, width, height), published), np.asarray(square))


PUBLISHED = Path(__file__).parents[3] / "../shared/data/genecis/change_object.json"

# Categories of COCO Panoptic that conditions say in other words, as its annotation files name them.
REWORDED = """door-stuff floor-wood mirror-stuff wall-brick wall-stone wall-tile wall-wood water-other window-blind
window-other tree-merged fence-merged ceiling-merged sky-other-merged cabinet-merged table-merged floor-other-merged
pavement-merged mountain-merged grass-merged dirt-merged paper-merged food-other-merged building-other-merged
wall-other-merged rug-merged"""


@pytest.mark.skipif(not PUBLISHED.exists(), reason="GeneCIS's change_object.json is not at hand")
def test_published_templates_keep_the_rules_but_repeat_themselves() -> None:
    published = json.loads(PUBLISHED.read_text())
    conditions = {template["condition"] for template in published}
    named = [condition_name(category) for category in REWORDED.split()]
    assert {*named} <= conditions and len({*named}) == len(named)  # categories that differ are conditions that differ
    repeated = problems(published, 14, conditions)
    # Ours come again too.
    assert (len(published), len({entry["reference"]["val_image_id"] for entry in published})) == (1960, 218)
    assert Counter(rule for _, rule in repeated) == {"template-again": 167, "target-again": 1}
    # A toaster: the target is its own last distractor, that is, both close and far.
    assert (19, "target-again") in repeated and published[19]["condition"] == "toaster"
