"""The miniature's photos: annotations that are true of the pictures, and enough of them for all that GeneCIS needs."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.cached_builds import drawn_miniature
from twinset.contracts.kinds.template import Template
from twinset.generators.captions.json_files import read_json_captions
from twinset.generators.captions.tables import Caption
from twinset.generators.galleries.source import AttributeTemplates, ObjectTemplates
from twinset.generators.scene_graphs.relations import parser_of
from twinset.generators.triplets.ratings import load_ratings
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context
from twinset_demo import photos
from twinset_demo.photos.painter import Photo, Segment
from twinset_demo.photos.relations import Relation, captions
from twinset_demo.photos.scenes import Scene, scenes
from twinset_demo.photos.sheet import COLOURS

Mask = NDArray[np.bool_]


@pytest.fixture(scope="module")
def drawn() -> Path:
    """All photos, as this code paints them; not to be changed."""
    return drawn_miniature() / "stills"


@pytest.fixture(scope="module")
def painted() -> list[tuple[Scene, Photo]]:
    """All photos with their segments."""
    return [(scene, scene.paint()) for scene in scenes()]


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def around(mask: Mask) -> Mask:
    """What is at most three pixels from a part of a picture."""
    return (cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0) & ~mask


@pytest.mark.slow
def test_painting_twice_gives_the_same_bytes(drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = scenes()[::8]
    monkeypatch.setattr(photos, "scenes", lambda: chosen)
    photos.write_photos(tmp_path)
    assert len([path for path in drawn.rglob("*") if path.is_file()]) == 2 * len(scenes()) + 5
    pictures = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("*/*"))
    assert len(pictures) == 2 * len(chosen)
    for name in pictures:
        assert (drawn / name).read_bytes() == (tmp_path / name).read_bytes(), name
    for name, key in (("captions", "annotations"), ("panoptic", "annotations"), ("panoptic", "images"), ("vaw", "")):
        one, other = (read(folder / f"{name}.json") for folder in (tmp_path, drawn))
        again, all_of_them = (one[key], other[key]) if key else (one, other)
        assert again and all(entry in all_of_them for entry in again), name


def test_a_picture_is_found_by_both_datasets_names(drawn: Path) -> None:
    for image in read(drawn / "panoptic.json")["images"]:
        assert image["file_name"] == f"{image['id']}.jpg" == f"{image['id']:012d}.jpg"
        with Image.open(drawn / "images" / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"]) == (320, 240)


def test_segments_are_the_pixels_of_their_pngs(drawn: Path) -> None:
    panoptic = read(drawn / "panoptic.json")
    known = {category["id"]: category for category in panoptic["categories"]}
    assert known[187]["name"] == "sky-other-merged" and known[17] == {
        "supercategory": "animal",
        "isthing": 1,
        "id": 17,
        "name": "cat",
    }
    assert [one["image_id"] for one in panoptic["annotations"]] == [image["id"] for image in panoptic["images"]]
    for annotation in panoptic["annotations"]:
        pixels = np.asarray(Image.open(drawn / "panoptic" / annotation["file_name"])).astype(np.int64)
        ids = pixels @ [1, 256, 65536]
        infos = {info["id"]: info for info in annotation["segments_info"]}
        assert set(np.unique(ids).tolist()) == set(infos)
        for identifier, info in infos.items():
            rows, columns = np.nonzero(ids == identifier)
            left, top, width, height = info["bbox"]
            assert (len(rows), info["iscrowd"]) == (info["area"], 0)
            assert info["area"] > 320 * 240 / 100  # GeneCIS counts no less as present, and people see less
            assert (columns.min(), rows.min()) == (left, top)
            assert (columns.max() + 1, rows.max() + 1) == (left + width, top + height)
        stuff = [info["category_id"] for info in infos.values() if not known[info["category_id"]]["isthing"]]
        assert len(stuff) == len(set(stuff))


def test_attributes_are_to_be_seen(drawn: Path) -> None:
    types = read(drawn / "attribute_types.json")
    instances = read(drawn / "vaw.json")
    assert len({instance["instance_id"] for instance in instances}) == len(instances) > 900
    pictures: dict[str, NDArray[np.int64]] = {}
    for instance in instances:
        name = instance["image_id"]
        if name not in pictures:
            pictures[name] = np.asarray(Image.open(drawn / "images" / f"{name}.jpg")).astype(np.int64)
        left, top, width, height = map(int, instance["instance_bbox"])
        assert left >= 0 and top >= 0 and left + width <= 320 and top + height <= 240
        outline = np.concatenate(instance["instance_polygon"])
        assert np.abs(outline.min(axis=0) - (left, top)).max() <= 1  # polygons leave out a corner of a pixel
        assert np.abs(outline.max(axis=0) - (left + width - 1, top + height - 1)).max() <= 1
        positive, negative = set(instance["positive_attributes"]), set(instance["negative_attributes"])
        assert not positive & negative and positive | negative <= {one for of in types.values() for one in of}
        assert all(len(positive & set(of)) == 1 or not (positive | negative) & set(of) for of in types.values())
        if colour := positive & set(types["color"]):
            inside = pictures[name][top : top + height, left : left + width].reshape(-1, 3)
            off = np.abs(inside - np.asarray(COLOURS[colour.pop()])).max(axis=1)
            assert (off < 60).sum() > 60, instance


def visible(photo: Photo, noun: str, said: str) -> Iterator[tuple[Segment, Mask]]:
    """Parts of a photo that a word of a caption can mean: with the look that it says, where it says one."""
    for segment in photo.segments:
        look = set() if segment.thing is None else set(segment.thing.look.attributes().values())
        adjective = said.removesuffix(noun).split()[-1:]
        if segment.noun == noun and (set(adjective) <= {"a", "an", "the"} | look):
            yield segment, photo.labels == segment.number


def holds(photo: Photo, relation: Relation) -> bool:
    """Whether a relation is to be seen, from the pixels of what its words can mean."""
    whose, what = relation.said.split(f" {relation.preposition} ")
    for subject, mask in visible(photo, relation.subject, whose):
        if relation.object in ("shirt", "dress"):
            return subject.thing is not None and what.split()[-2] == subject.thing.look.color
        for _, other in visible(photo, relation.object, what):
            (rows, columns), (other_rows, other_columns) = np.nonzero(mask), np.nonzero(other)
            overlap = min(columns.max(), other_columns.max()) - max(columns.min(), other_columns.min())
            touch = (around(mask) & other).sum()
            low = mask.copy()
            low[: rows.max() - (rows.max() - rows.min()) // 4] = False  # feet, or all that hangs
            if relation.preposition == "on" and (around(low) & other).sum() >= 15:
                return True
            if relation.preposition == "in" and touch >= 100:
                return True
            level = min(rows.max(), other_rows.max()) - max(rows.min(), other_rows.min())
            if relation.preposition == "beside" and level > 0 >= overlap > -50:
                return True
            if relation.preposition == "under" and overlap > 0 and other_rows.min() < rows.min():
                return True
            if relation.preposition == "in front of" and rows.max() > other_rows.max():
                return True
            if relation.preposition == "behind" and touch >= 15 and rows.min() < other_rows.min():
                return True
    return False


def test_captions_say_what_is_to_be_seen(drawn: Path, painted: list[tuple[Scene, Photo]]) -> None:
    written = [caption for caption in read_json_captions(drawn / "captions.json") if isinstance(caption, Caption)]
    said = [(scene, photo, relation) for scene, photo in painted for relation in captions(scene, photo)]
    assert [(one.image_id, one.caption) for one in written] == [(str(s.image_id), r.said) for s, _, r in said]
    assert len({one.caption_id for one in written}) == len(written) > 580
    for scene, photo, relation in said:
        assert holds(photo, relation), (scene.image_id, relation)


def test_the_parser_finds_what_captions_say(drawn: Path, painted: list[tuple[Scene, Photo]]) -> None:
    said = [(scene, relation) for scene, photo in painted for relation in captions(scene, photo)]
    parser = parser_of(find_pipeline())
    found, images, objects = 0, defaultdict(set), defaultdict(set)
    ratings = load_ratings(drawn / "concreteness.txt", "strict")
    rated, passed = 0, 0
    read_relations = parser.relations([relation.said for _, relation in said])
    for (scene, relation), parsed in zip(said, read_relations, strict=True):
        words = [(one.subject, one.predicate, one.object) for one in parsed]
        found += words == [(relation.subject, relation.preposition, relation.object)]
        for one in parsed:
            images[one.subject].add(scene.image_id)
            objects[one.subject].add(one.object)
            both = ratings.strict_of([one.subject, one.object], [one.subject_lemma, one.object_lemma])
            rated += bool(np.isfinite(both).all())
            passed += bool(both.mean() > 4.8)
    assert found >= 0.93 * len(said)
    assert sum(len(images[word]) >= 5 and len(objects[word]) >= 2 for word in images) >= 30
    assert rated > 0.9 * len(said) and 0.6 * rated < passed < 0.95 * rated  # the threshold has something to do


@pytest.mark.parametrize("task", ["focus", "change"])
@pytest.mark.parametrize("kind", ["attributes", "objects"])
def test_every_task_of_genecis_finds_its_templates(drawn: Path, task: str, kind: str) -> None:
    common: dict[str, Any] = {"task": task, "media": drawn / "images", "licence": "CC0"}
    source = (
        AttributeTemplates(
            kind="genecis-attributes",
            annotations=drawn / "vaw.json",
            taxonomy=drawn / "attribute_types.json",
            **common,
        )
        if kind == "attributes"
        else ObjectTemplates(kind="genecis-objects", annotations=drawn / "panoptic.json", **common)
    )
    generator = source.open(Context(f"{task}-{kind}"))
    planned = list(generator.plan())
    assert len(planned) > 500
    assert len({candidate.condition for candidate in planned[:24]}) >= 5
    assert all(isinstance(sample, Template) for sample in generator.make(planned[:2]))
