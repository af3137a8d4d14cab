"""Samples of every kind: what is written into a tar is what is read back, and nothing else passes for one."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from manifests.errors import WrongUse
from manifests.recipe import Encoding
from shards.kinds.fields import encode_image, fields_of
from shards.kinds.names import KINDS, TRIPLET, kind_of_source
from shards.kinds.reading import StoredTemplate, StoredTriplet, pairs, stored
from shards.kinds.samples import Frame, Sample, Source, Template, Triplet
from shards.rows import KEPT, Row, content_digest, read_rows, write_rows
from shards.storage.tar_reader import BrokenTar

PARTS = {"reference": "a dog on a hill", "target": "a dog in a car", "distractor": "a man in a car"}


def frame(grey: int) -> Frame:
    return Frame(f"#{grey}", np.full((24, 32, 3), grey, np.uint8), -1.0, Source(f"{grey}.jpg", 5, "0" * 64))


def triplet(distractor: bool = True, images: bool = True) -> Triplet:
    return Triplet(
        key="triplets-a",
        group="triplet-0",
        split="train",
        condition="in car",
        reference=frame(10) if images else None,
        target=frame(20) if images else None,
        distractor=frame(30) if images and distractor else None,
        captions=PARTS,
        images={part: f"{part}.jpg" for part in PARTS},
        provenance={"draw": 0},
        scores={"concreteness": 4.9},
    )


def template(distractors: int = 14) -> Template:
    return Template(
        key="focus-object-a",
        group="reference-7",
        split="test",
        task="focus-object",
        condition="car",
        reference=frame(1),
        target=frame(2),
        gallery=tuple(frame(3 + number) for number in range(distractors)),
        entry={"condition": "car", "reference": {"val_image_id": 7}},
        provenance={"draw": 0},
    )


def written(sample: Sample) -> dict[str, bytes]:
    images = {role: encode_image(one, Encoding(format="png")) for role, one in sample.pictures().items()}
    return dict(fields_of(sample, images, "genecis", "CC0-1.0", "png"))


@pytest.mark.parametrize("distractor", [True, False])
def test_a_triplet_is_read_as_it_was_written(distractor: bool) -> None:
    fields = written(triplet(distractor))
    found = stored("triplets-a", fields, "x.tar")
    assert isinstance(found, StoredTriplet)
    assert list(found.images) == ["reference", "target", "distractor"][: 2 + distractor]
    assert found.condition == found.json.condition == "in car"
    assert found.json.captions == PARTS and found.json.scores == {"concreteness": 4.9}
    assert found.json.images["target"].size == (32, 24) and found.images["target"] == fields["target.png"]


@pytest.mark.parametrize("distractors", [9, 14])
def test_a_template_is_read_as_it_was_written(distractors: int) -> None:
    found = stored("focus-object-a", written(template(distractors)), "x.tar")
    assert isinstance(found, StoredTemplate)
    assert list(found.images)[:3] == ["reference", "target", "gallery00"] and len(found.images) == 2 + distractors
    assert found.json.task == "focus-object" and found.json.entry["reference"] == {"val_image_id": 7}


def without(fields: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    return {field: content for field, content in fields.items() if field != name}


@pytest.mark.parametrize("name", ["reference.png", "target.png", "condition.txt", "json"])
def test_a_triplet_that_lacks_something_is_refused(name: str) -> None:
    with pytest.raises(BrokenTar, match=r"x\.tar: triplets-a"):
        stored("triplets-a", without(written(triplet()), name), "x.tar")


@pytest.mark.parametrize("name", ["target.png", "gallery03.png"])
def test_a_template_with_a_gap_is_refused(name: str) -> None:
    with pytest.raises(BrokenTar, match="instead of"):
        stored("focus-object-a", without(written(template()), name), "x.tar")


def test_a_mask_belongs_to_pairs_alone() -> None:
    with pytest.raises(BrokenTar, match=r"mask0\.png"):
        stored("triplets-a", {**written(triplet()), "mask0.png": b"x"}, "x.tar")


def test_what_takes_pairs_says_what_it_was_given() -> None:
    found = stored("triplets-a", written(triplet()), "x.tar")
    with pytest.raises(WrongUse, match="is a triplet, and --format openclip takes pairs"):
        list(pairs([found], "--format openclip"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rows_of_every_kind_are_read_as_they_were_written(kind: object, tmp_path: Path) -> None:
    assert isinstance(kind, type(TRIPLET))
    row = Row(
        kind=kind,
        key="a",
        group="g",
        split="test",
        verdict=KEPT,
        words={name: f"word of {name}" for name in kind.described},
        images={role: "0" * 64 for role in kind.images if role not in kind.optional},
        content="c",
        sources=(Source("7.jpg", 5, "1" * 64),),
    )
    write_rows([row], tmp_path / "rows")
    assert read_rows(io.BytesIO((tmp_path / "rows").read_bytes())) == [row]


def test_the_same_question_is_a_duplicate_and_another_is_none() -> None:
    hashes = {"reference": "a", "target": "b"}
    other = triplet()
    other.captions = {**PARTS, "target": "my dog in the car"}
    assert content_digest(triplet(), hashes) == content_digest(other, hashes)
    assert content_digest(triplet(), {"reference": "b", "target": "a"}) != content_digest(triplet(), hashes)
    # Without images the words are all that tells triplets apart.
    assert content_digest(triplet(images=False), {}) != content_digest(other, {})


def test_kinds_of_sources() -> None:
    named = {source: kind_of_source(source).name for source in ("gebc", "genecis-triplets", "genecis-objects")}
    assert named == {"gebc": "pair", "genecis-triplets": "triplet", "genecis-objects": "template"}
