"""Samples of every kind: what is written into a tar is what is read back, and nothing else passes for one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.made_samples import Planned, pair_shards, template_shards, text_pair_shards, triplet_shards
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.samples import encode_image
from twinset.contracts.licences.terms import Terms
from twinset.contracts.recipe import Encoding
from twinset.shards.rows import content_digest, fields_of, stored
from twinset.shards.storage.tar_reader import BrokenTar


def first(shards: list[list[Planned]]) -> Any:
    return shards[0][0].made


PAIR_OF_IMAGES = first(pair_shards("p"))
TRIPLET_OF_IMAGES, BARE_TRIPLET = first(triplet_shards("t")), first(triplet_shards("t", images=False))
TWO_IMAGES = first(triplet_shards("t", distractors=False))
TEXT_PAIR, BARE_TEXT_PAIR = first(text_pair_shards("n")), first(text_pair_shards("n", images=False))
TEMPLATE, SMALL = first(template_shards("f", "focus-object")), first(template_shards("f", "focus-attribute"))


def written(sample: Sample) -> dict[str, bytes]:
    images = {role: encode_image(one, Encoding(format="png")) for role, one in sample.pictures().items()}
    return dict(fields_of(sample, images, "genecis", Terms("CC0-1.0"), "png"))


@pytest.mark.parametrize("sample", [PAIR_OF_IMAGES, TRIPLET_OF_IMAGES, TWO_IMAGES, TEXT_PAIR, SMALL, TEMPLATE])
def test_a_sample_is_read_as_it_was_written(sample: Sample) -> None:
    fields = written(sample)
    found = stored(sample.key, fields, "x.tar")
    assert found.kind is sample.kind and found.extension == "png" and found.fields == fields
    assert found.images == {role: fields[f"{role}.png"] for role in sample.pictures()}
    assert found.texts == {name: sample.described()[name] for name in sample.kind.texts}
    assert (found.json.group, found.json.scores, found.json.licence) == (sample.group, sample.scores, "CC0-1.0")


@pytest.mark.parametrize(
    "sample, name",
    [
        *((PAIR_OF_IMAGES, name) for name in ("image0.png", "caption1.txt", "json")),
        *((TRIPLET_OF_IMAGES, "target.png"), (TEXT_PAIR, "negative_caption.txt"), (TEMPLATE, "gallery03.png")),
    ],
)
def test_a_sample_that_lacks_something_is_refused(sample: Sample, name: str) -> None:
    with pytest.raises(BrokenTar, match=rf"x\.tar: {sample.key} has \[.*build this shard again"):
        stored(sample.key, {field: one for field, one in written(sample).items() if field != name}, "x.tar")


def test_the_same_question_is_a_duplicate_and_another_is_none() -> None:
    def same(one: Sample, images: dict[str, str], other: Sample, shown: dict[str, str] | None = None) -> bool:
        return content_digest(one, images) == content_digest(other, images if shown is None else shown)

    hashes = {"reference": "a", "target": "b"}
    reworded = replace(TRIPLET_OF_IMAGES, captions={**TRIPLET_OF_IMAGES.captions, "target": "my disc"})
    assert same(TRIPLET_OF_IMAGES, hashes, reworded)
    assert not same(TRIPLET_OF_IMAGES, hashes, TRIPLET_OF_IMAGES, {"reference": "b", "target": "a"})
    # Without images the words are all that tells triplets apart.
    assert not same(BARE_TRIPLET, {}, replace(reworded, reference=None, target=None, distractor=None))
    pair = PAIR_OF_IMAGES
    mirrored = replace(pair, captions0=pair.captions1, captions1=pair.captions0)
    assert same(pair, {"image0": "a", "image1": "b"}, mirrored, {"image0": "b", "image1": "a"})
    renamed = {"image_id": "8", "type": "swap"}
    assert same(TEXT_PAIR, {"image": "a"}, replace(TEXT_PAIR, **renamed))
    assert not same(TEXT_PAIR, {"image": "a"}, TEXT_PAIR, {"image": "b"})
    # Without images the ids of text pairs tell them apart.
    assert not same(BARE_TEXT_PAIR, {}, replace(BARE_TEXT_PAIR, **renamed))
