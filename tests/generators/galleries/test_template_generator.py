"""GeneCIS's own templates of Change an Object, checked for all that needs no annotations."""

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image

from tests.generators.galleries.annotated import TAXONOMY, labelled, save, scenes
from tests.generators.galleries.invariants import AttributeRules, ObjectRules, Problem, Rule, check
from twinset.contracts.candidate import from_row, to_row
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.kinds.template import Template
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.attribute_tasks import AttributeDrafts, ChangeAttribute, FocusAttribute
from twinset.generators.galleries.drafts import Task
from twinset.generators.galleries.panoptic import condition_name, read_scenes
from twinset.generators.galleries.source import AttributeTemplates, ObjectTemplates, TemplateCandidate, Templates
from twinset.generators.galleries.vaw import Instance, crop, read_instances
from twinset.shards.contracts import Context

FOCUS_OR_CHANGE: tuple[Literal["focus", "change"], ...] = ("focus", "change")
EVERY = [(kind, task) for kind in ("object", "attribute") for task in FOCUS_OR_CHANGE]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotations, and pictures that tell which image they are of (`picture`)."""
    root = tmp_path_factory.mktemp("genecis")
    whole, records = scenes(), labelled()
    save(whole, root / "panoptic.json")
    save(records, root / "vaw.json")
    save(TAXONOMY, root / "types.json")
    for folder, names in (
        ("coco", [image["file_name"] for image in whole["images"]]),
        ("vg/VG_100K_2", sorted({f"{record['image_id']}.jpg" for record in records})),
    ):
        (root / folder).mkdir(parents=True)
        for name in names:
            Image.fromarray(picture(int(name.removesuffix(".jpg")))).save(root / folder / name, "PNG")
    return root


def picture(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The pixels of an image by its id; no black, which pads crops."""
    pixels = np.random.default_rng(number).integers(1, 256, (30, 40, 3), dtype=np.uint8)
    return pixels


def generator(root: Path, kind: str, task: Literal["focus", "change"], seed: int = 1, **more: Any) -> Templates:
    source: AttributeTemplates | ObjectTemplates
    if kind == "object":
        settings = {"annotations": root / "panoptic.json", "media": root / "coco", **more}
        source = ObjectTemplates(kind="genecis-objects", task=task, **settings)
    else:
        settings = {"annotations": root / "vaw.json", "taxonomy": root / "types.json", "media": root / "vg", **more}
        source = AttributeTemplates(kind="genecis-attributes", task=task, **settings)
    return source.open(Context(f"{task}-{kind}", seed=seed))


@pytest.mark.parametrize(("kind", "task"), EVERY)
def test_every_rule_holds_of_all_that_can_be_made(root: Path, kind: str, task: Any) -> None:
    planned = list(generator(root, kind, task).plan())
    assert len(planned) > 200
    assert [from_row(TemplateCandidate, to_row(one)) for one in planned] == planned
    assert len({one.key for one in planned}) == len({one.group for one in planned}) == len(planned)
    assert list(islice(generator(root, kind, task).plan(), 30)) == planned[:30]
    made = [json.loads(one.entry) for one in planned]
    if kind == "object":
        scenes_read = read_scenes(root / "panoptic.json", LeftOut())
        rules: Rule = ObjectRules(scenes_read)
        conditions: Collection[str] = scenes_read.names
    else:
        rules = AttributeRules(read_instances(root / "vaw.json", TAXONOMY, LeftOut()), TAXONOMY)
        conditions = TAXONOMY if task == "focus" else {name for names in TAXONOMY.values() for name in names}
    assert check(made, planned[0].task, rules, conditions) == []  # type: ignore[arg-type]
    assert {len(one.images) for one in planned} == {11 if (kind, task) == ("attribute", "focus") else 16}
    assert len({tuple(sorted(json.loads(one.provenance))) for one in planned}) == 1


@pytest.mark.parametrize("task", FOCUS_OR_CHANGE)
def test_scenes_are_shown_whole(root: Path, task: Any) -> None:
    made = generator(root, "object", task)
    planned = list(islice(made.plan(), 3))
    for candidate, template in zip(planned, made.make(planned), strict=True):
        assert isinstance(template, Template)
        assert (template.key, template.task, template.condition) == (
            candidate.key,
            f"{task}-object",
            candidate.condition,
        )
        assert template.entry == json.loads(candidate.entry)
        for frame, image in zip(template.pictures().values(), shown(template), strict=True):
            assert np.array_equal(frame.pixels, picture(image["val_image_id"]))
            assert frame.source.path == frame.id == f"{image['val_image_id']:012d}.jpg"
            assert frame.pts == -1


@pytest.mark.parametrize("crops", ["published", "corrected"])
def test_objects_are_cut_out(root: Path, crops: Any) -> None:
    made = generator(root, "attribute", "change", crops=crops)
    planned = list(islice(made.plan(), 3))
    for template in made.make(planned):
        assert isinstance(template, Template)
        assert len(template.pictures()) == 16
        for frame, image in zip(template.pictures().values(), shown(template), strict=True):
            expected = crop(picture(int(image["image_id"])), tuple(image["instance_bbox"]), crops)
            assert np.array_equal(frame.pixels, expected)
            assert frame.source.path == f"VG_100K_2/{image['image_id']}.jpg"
        assert len({frame.id for frame in template.pictures().values()}) == 16


def test_a_missing_or_broken_image_rejects_its_templates(root: Path, tmp_path: Path) -> None:
    made = generator(root, "object", "focus", media=tmp_path)
    planned = list(islice(made.plan(), 2))
    for name in planned[0].images:
        (tmp_path / name).write_bytes((root / "coco" / name).read_bytes())
    (tmp_path / planned[0].images[5]).unlink()
    rejected, _ = made.make(planned)
    assert isinstance(rejected, Rejected)
    assert (rejected.reason, rejected.media, rejected.media_size) == ("missing-media", planned[0].images[5], None)
    (tmp_path / planned[0].images[5]).write_bytes(b"no picture")
    (broken,) = generator(root, "object", "focus", media=tmp_path).make(planned[:1])
    assert isinstance(broken, Rejected)
    assert (broken.reason, broken.media, broken.media_size) == ("broken-media", planned[0].images[5], 10)


def test_a_box_outside_its_image_rejects_its_template(root: Path) -> None:
    made = generator(root, "attribute", "focus")
    (planned,) = islice(made.plan(), 1)
    entry = copy.deepcopy(json.loads(planned.entry))
    entry["target"]["instance_bbox"] = [40.0, 1.0, 5.0, 5.0]  # an image is 40 wide
    moved = TemplateCandidate(**{**to_row(planned), "images": planned.images, "entry": json.dumps(entry)})
    (rejected,) = made.make([moved])
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "box-outside" and rejected.media is None
    assert entry["target"]["instance_id"] in rejected.detail and "40 x 30" in rejected.detail


@pytest.mark.parametrize("kind", ["object", "attribute"])
def test_annotations_of_which_nothing_can_be_made_are_refused(root: Path, tmp_path: Path, kind: str) -> None:
    few = save(scenes(rich=8, simple=3) if kind == "object" else labelled(20), tmp_path / "few.json")
    with pytest.raises(WrongUse, match=r"few\.json: no template of focus can be made .*take the whole of a split"):
        next(generator(root, kind, "focus", annotations=few).plan())


def test_what_is_read_is_part_of_the_digest(root: Path, tmp_path: Path) -> None:
    taxonomy = save({**TAXONOMY, "shape": ["round"]}, tmp_path / "types.json")
    one, other = generator(root, "attribute", "focus"), generator(root, "attribute", "focus", taxonomy=taxonomy)
    assert one.inputs() == generator(root, "attribute", "change").inputs() != other.inputs()
    assert generator(root, "object", "focus").inputs() != one.inputs()


def shown(template: Template) -> list[Mapping[str, Any]]:
    entry: Any = template.entry
    return [entry["reference"], entry["target"], *entry["gallery"]]


PUBLISHED = Path(__file__).parents[3] / "../shared/data/genecis/change_object.json"

# The 133 categories of COCO Panoptic, as its annotation files name them.
COCO = """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop
sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop,
mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors,
teddy bear, hair drier, toothbrush, banner, blanket, bridge, cardboard, counter, curtain, door-stuff, floor-wood,
flower, fruit, gravel, house, light, mirror-stuff, net, pillow, platform, playingfield, railroad, river, road, roof,
sand, sea, shelf, snow, stairs, tent, towel, wall-brick, wall-stone, wall-tile, wall-wood, water-other,
window-blind, window-other, tree-merged, fence-merged, ceiling-merged, sky-other-merged, cabinet-merged,
table-merged, floor-other-merged, pavement-merged, mountain-merged, grass-merged, dirt-merged, paper-merged,
food-other-merged, building-other-merged, rock-merged, wall-other-merged, rug-merged"""


@pytest.fixture(scope="module")
def published() -> list[dict[str, Any]]:
    if not PUBLISHED.exists():
        pytest.skip("GeneCIS's change_object.json is not at hand")
    templates: list[dict[str, Any]] = json.loads(PUBLISHED.read_text())
    return templates


def test_published_templates_keep_the_rules_but_repeat_themselves(published: list[dict[str, Any]]) -> None:
    conditions = {condition_name(" ".join(name.split())) for name in COCO.split(",")}
    assert len(conditions) == 133  # categories that differ are conditions that differ
    problems = check(published, "change-object", conditions=conditions)
    # Ours come again too.
    assert (len(published), len({entry["reference"]["val_image_id"] for entry in published})) == (1960, 218)
    assert Counter(problem.rule for problem in problems) == {"template-again": 167, "target-again": 1}
    (twice,) = (problem for problem in problems if problem.rule == "target-again")
    # A toaster: the target is its own last distractor, that is, both close and far.
    assert (twice.template, published[19]["condition"]) == (19, "toaster")


def test_published_distractors_are_ranked_and_targets_are_not_first(published: list[dict[str, Any]]) -> None:
    """The near distractors of all templates of a reference are in one order; many targets come late in it."""
    order: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for entry in published:
        near = [image["val_image_id"] for image in entry["gallery"][:9]]
        order[entry["reference"]["val_image_id"]] |= set(combinations(near, 2))
    assert not any((later, sooner) in pairs for pairs in order.values() for sooner, later in pairs)
    behind = 0
    for entry in published:
        target, pairs = entry["target"]["val_image_id"], order[entry["reference"]["val_image_id"]]
        behind += any((image["val_image_id"], target) in pairs for image in entry["gallery"][:9])
    assert behind == 786  # most of the others cannot be placed


ATTRIBUTE_TASKS: dict[str, type[AttributeDrafts]] = {
    "focus-attribute": FocusAttribute,
    "change-attribute": ChangeAttribute,
}
TASKS: tuple[Task, ...] = ("focus-attribute", "change-attribute")
Entry = dict[str, Any]


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> list[Instance]:
    path = save(labelled(), tmp_path_factory.mktemp("vaw") / "val.json")
    return read_instances(path, TAXONOMY, LeftOut())


def entries(instances: list[Instance], task: Task) -> list[Entry]:
    return [draft.entry for draft in ATTRIBUTE_TASKS[task](instances, TAXONOMY, 1, "objects", LeftOut())]


def problems(made: list[Entry], instances: list[Instance], task: Task) -> list[Problem]:
    conditions = TAXONOMY if task == "focus-attribute" else {name for names in TAXONOMY.values() for name in names}
    return check(made, task, AttributeRules(instances, TAXONOMY), conditions=conditions)


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_types_attributes_and_objects_take_turns(instances: list[Instance], task: Task) -> None:
    drafts = list(islice(ATTRIBUTE_TASKS[task](instances, TAXONOMY, 1, "objects", LeftOut()), 120))
    types = Counter(draft.facts["attribute_type"] for draft in drafts)
    # No type of no clear category in Focus; in Change none of whose other attributes any object has.
    assert set(types) == set(TAXONOMY) - {"state" if task == "focus-attribute" else "tone"}
    assert max(types.values()) - min(types.values()) <= 2
    sizes = Counter(draft.facts["attribute"] for draft in drafts if draft.facts["attribute_type"] == "size")
    assert max(sizes.values()) - min(sizes.values()) <= 2
    objects = Counter(draft.facts["object"] for draft in drafts if draft.facts["attribute"] == "large")
    assert max(objects.values()) - min(objects.values()) <= 1


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_a_reference_without_gallery_is_counted(tmp_path: Path, task: Task) -> None:
    few = read_instances(save(labelled(400, images=40), tmp_path / "few.json"), TAXONOMY, LeftOut())
    templates = ATTRIBUTE_TASKS[task](few, TAXONOMY, 1, "objects", LeftOut())
    assert problems([draft.entry for draft in templates], few, task) == []
    assert templates.excluded["reference-without-gallery"] > 0


def instance(number: int, name: str, positive: str, negative: str = "", image: int | None = None) -> Instance:
    box = (1.0, 2.0, 3.0, 4.0)
    place = str(number if image is None else image)
    return Instance(str(number), place, box, name, tuple(positive.split()), tuple(negative.split()))


def focus_set(*more: Instance) -> list[Instance]:
    """Exactly one Focus template for each of two references: two red cups, nine that are not."""
    same = [instance(1, "cup", "red", "blue"), instance(2, "cup", "red", "blue")]
    return [*same, *(instance(10 + n, "cup", "green", "red") for n in range(9)), *more]


def test_focus_needs_nine_distractors_that_are_labelled_to_lack_the_attribute() -> None:
    whole = focus_set()
    made = entries(whole, "focus-attribute")
    assert {entry["reference"]["instance_id"] for entry in made} == {"1", "2"}
    unlabelled = [*whole[:-1], instance(18, "cup", "green")]
    assert entries(unlabelled, "focus-attribute") == []
    twice_in_one_image = [*whole[:-1], instance(18, "cup", "green", "red", image=17)]
    assert entries(twice_in_one_image, "focus-attribute") == []
    beside_a_red_cup = [*whole, instance(30, "cup", "red", image=10)]
    assert "30" not in {entry["reference"]["instance_id"] for entry in entries(beside_a_red_cup, "focus-attribute")}


def change_set() -> list[Instance]:
    """One red cup, six that are green and not red, nine red cars."""
    cups = [instance(1, "cup", "red"), *(instance(10 + n, "cup", "green", "red") for n in range(6))]
    return [*cups, *(instance(20 + n, "car", "red") for n in range(9))]


def test_change_needs_other_objects_with_the_attribute_and_the_same_without() -> None:
    made = entries(change_set(), "change-attribute")
    assert {(e["target"]["instance_id"], e["condition"]) for e in made} == {("1", "red")}
    assert sorted(e["reference"]["instance_id"] for e in made) == [str(10 + n) for n in range(6)]
    assert problems(made, change_set(), "change-attribute") == []
    for number, replaced in (
        (7, instance(20, "red cups", "red")),
        (7, instance(20, "car", "red", image=1)),
        (1, instance(10, "cup", "green")),
    ):
        fewer = change_set()
        fewer[number] = replaced
        assert entries(fewer, "change-attribute") == []
    both = change_set()
    both[0] = instance(1, "cup", "red green")  # as green as its references
    assert entries(both, "change-attribute") == []
