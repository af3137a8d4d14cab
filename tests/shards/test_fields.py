"""Samples of every kind: what is written into a tar is what is read back, and nothing else passes for one."""

import hashlib

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.pair import PAIR, Pair
from twinset.contracts.kinds.samples import EncodedImage, Frame, MediaFile, encode_image
from twinset.contracts.kinds.template import Template
from twinset.contracts.kinds.text_pair import TextPair
from twinset.contracts.kinds.triplet import TRIPLET, Triplet
from twinset.contracts.licences.terms import Terms
from twinset.contracts.recipe import Encoding
from twinset.shards.fields import content_digest, fields_of, stored
from twinset.shards.read import of_kind
from twinset.shards.storage.tar_reader import BrokenTar

CAPTIONS = {"reference": "a dog on a hill", "target": "a dog in a car", "distractor": "a man in a car"}
NUMBERS = np.zeros((24, 32), np.uint8)


def frame(grey: int, pts: float = -1.0) -> Frame:
    return Frame(f"#{grey}", np.full((24, 32, 3), grey, np.uint8), pts, MediaFile(f"{grey}.jpg", 5, "0" * 64))


def pair(masks: bool = False) -> Pair:
    return Pair(
        key="pairs-a", group="g", split="test", change="colour", image0=frame(1, 0.5), image1=frame(2, 1.5),
        captions0=("é one", "uno"), captions1=("two",), provenance={"b": 1, "a": [1, 2.5]}, scores={"s": 0.25},
        masks=(NUMBERS, NUMBERS + 1) if masks else None,
    )  # fmt: skip


def triplet(distractor: bool = True, images: bool = True) -> Triplet:
    shown = [frame(10), frame(20), frame(30) if distractor else None] if images else [None] * 3
    return Triplet(
        key="t-a", group="g", split="train", condition="in car", **dict(zip(CAPTIONS, shown, strict=True)),
        captions=CAPTIONS, images={part: f"{part}.jpg" for part in CAPTIONS}, provenance={"draw": 0}, scores={"c": 4.9},
    )  # fmt: skip


def text_pair(images: bool = True) -> TextPair:
    return TextPair(
        key="n-a", group="7", split="train", image=frame(40) if images else None, caption="a dog on a hill",
        negative_caption="a dog in a car", type="replace", subtype="rel", image_id="7",
        provenance={"caption_id": "c/1"}, scores={"vera_caption": 0.5},
    )  # fmt: skip


def template(distractors: int = 14) -> Template:
    return Template(
        key="f-a", group="r", split="test", task="focus-object", condition="car", reference=frame(1), target=frame(2),
        gallery=tuple(frame(3 + number) for number in range(distractors)),
        entry={"condition": "car", "reference": {"val_image_id": 7}}, provenance={"draw": 0},
    )  # fmt: skip


def written(sample: Sample) -> dict[str, bytes]:
    images = {role: encode_image(one, Encoding(format="png")) for role, one in sample.pictures().items()}
    return dict(fields_of(sample, images, "genecis", Terms("CC0-1.0"), "png"))


# Of the samples above, with names of roles for images: sha256 of fields (its start), and the content digest.
GOLDEN = [
    (pair(), "f61e41d753f77e5a", "bd2f3892b1b0e43ddf4f12302bba3b39"),
    (triplet(), "f73322fc107085ba", "8c3e5729499955ac46aafc32ce363c74"),
    (triplet(distractor=False), "872b45471ec463ef", "35726e86a73d17e047882bc4e5048db9"),
    (triplet(images=False), "3b7e0987a43b892d", "be6ad48f73d2ead5518d91c3c66af1d0"),
    (template(9), "1c7745592bdecbfb", "59f695ed57916d7c955ca3d2310883b5"),
    (template(), "d52230de65f16572", "8bf2814eab671a746565b929ab08569b"),
]


@pytest.mark.parametrize("sample, sha256, content", GOLDEN)
def test_bytes_change_with_the_version_of_the_json_alone(sample: Sample, sha256: str, content: str) -> None:
    images = {
        role: EncodedImage(role.encode(), role, (32, 24), one.pts, one.source)
        for role, one in sample.pictures().items()
    }
    fields = fields_of(sample, images, "ds", Terms("CC0", "Ada", "http://a.org"), "png")
    assert hashlib.sha256(b"\0".join(name.encode() + b"\0" + one for name, one in fields)).hexdigest()[:16] == sha256
    assert content_digest(sample, {role: role for role in images}) == content


SAMPLES = (pair(), pair(masks=True), triplet(), triplet(distractor=False), text_pair(), template(), template(9))


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_read_as_it_was_written(sample: Sample) -> None:
    fields = written(sample)
    found = stored(sample.key, fields, "x.tar")
    assert found.kind is sample.kind and found.extension == "png" and found.fields == fields
    assert found.images == {role: fields[f"{role}.png"] for role in sample.pictures()}
    assert found.texts == {name: sample.described()[name] for name in sample.kind.texts}
    assert [*found.attached] == [*sample.attached()]
    assert (found.json.group, found.json.scores, found.json.licence) == (sample.group, sample.scores, "CC0-1.0")


@pytest.mark.parametrize(
    "sample, name",
    [
        *((pair(True), name) for name in ("image0.png", "caption1.txt", "mask0.png", "json")),
        *((triplet(), name) for name in ("reference.png", "target.png", "condition.txt", "json")),
        *((text_pair(), name) for name in ("image.png", "negative_caption.txt")),
        *((template(), name) for name in ("target.png", "gallery00.png", "gallery03.png")),
    ],
)
def test_a_sample_that_lacks_something_is_refused(sample: Sample, name: str) -> None:
    with pytest.raises(BrokenTar, match=rf"x\.tar: {sample.key} has \[.*build this shard again"):
        stored(sample.key, {field: one for field, one in written(sample).items() if field != name}, "x.tar")


def test_a_json_of_another_shape_is_refused() -> None:
    fields = written(pair())
    with pytest.raises(BrokenTar, match=r"pairs-a\.json: change Input should be a valid string"):
        stored("pairs-a", {**fields, "json": fields["json"].replace(b'"colour"', b"7")}, "x.tar")


def test_what_takes_one_kind_says_what_it_was_given() -> None:
    found = stored("t-a", written(triplet()), "x.tar")
    assert list(of_kind([found], TRIPLET, "this")) == [found]
    with pytest.raises(WrongUse, match="is a triplet, and --format openclip takes pairs"):
        list(of_kind([found], PAIR, "--format openclip"))


def test_the_same_question_is_a_duplicate_and_another_is_none() -> None:
    hashes, other = {"reference": "a", "target": "b"}, triplet()
    other.captions = {**CAPTIONS, "target": "my dog in the car"}
    assert content_digest(triplet(), hashes) == content_digest(other, hashes)
    assert content_digest(triplet(), {"reference": "b", "target": "a"}) != content_digest(triplet(), hashes)
    # Without images the words are all that tells triplets apart.
    assert content_digest(triplet(images=False), {}) != content_digest(other, {})
    mirrored, hashes = pair(), {"image0": "a", "image1": "b"}
    mirrored.captions0, mirrored.captions1 = mirrored.captions1, mirrored.captions0
    assert content_digest(pair(), hashes) == content_digest(mirrored, {"image0": "b", "image1": "a"})


def test_text_pairs_of_one_image_with_the_same_words_are_duplicates() -> None:
    other, another = text_pair(), text_pair(images=False)
    other.image_id, other.type, another.image_id = "8", "swap", "8"
    assert content_digest(text_pair(), {"image": "a"}) == content_digest(other, {"image": "a"})
    assert content_digest(text_pair(), {"image": "a"}) != content_digest(text_pair(), {"image": "b"})
    # Without images their ids tell them apart.
    assert content_digest(text_pair(images=False), {}) != content_digest(another, {})
