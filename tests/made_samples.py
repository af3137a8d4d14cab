"""Samples of every kind from drawn pictures, planned in shards: what readers must bear is among them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from twinset.contracts.canonical import digest, identity_of, sample_key
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.contracts.kinds.triplet import PARTS
from twinset.contracts.licences.terms import Terms
from twinset.generators.galleries.source import Template
from twinset.generators.text_pairs import TextPair
from twinset.generators.triplets.source import Triplet

COLOURS = ("red", "green", "blue", "orange", "purple")
SIZES = ((96, 72), (64, 96), (80, 80))  # pixels of drawn pictures: landscape, portrait and square take turns
HOSTILE = "on <script>alert('x')</script> & rouge écarlate 红色 $x_1$ | `a`"
LONG = "beside a word and another " * 400  # more than 10,000 characters
MISSING, REPEATS = "-Gone_1", "-Same_3"  # a video that is not there; one in which a pair says the same twice
VIDEOS = ("-Disc_0", MISSING, "Disc.2", REPEATS)
PAIRS = ((0, 1), (0, 2), (1, 2))
EQBEN = {"eq-ag": "action-genome", "eq-gebc": "gebc", "eq-youcook2": "youcook2"}  # kinds that exporters know
TASKS = ("focus-attribute", "change-attribute", "focus-object", "change-object")
GONE = 3  # the number of the triplet or template whose image is not there


@dataclass(frozen=True)
class Planned:
    """A candidate as far as its rows show it. made: the sample, or why there is none. words: of a rejected one.

    terms: its own, None for the source's.
    """

    made: Sample | Rejected
    identity: str
    group: str
    judge: str = "generator"
    words: dict[str, str] = field(default_factory=dict)
    terms: Terms | None = None


def draw(number: int, video: str = "") -> Frame:
    """A disc of a colour on a ground that tells the number; of a video, frame ``number``."""
    width, height = SIZES[0] if video else SIZES[number % 3]
    ground = (40 * VIDEOS.index(video), 90, 120) if video else (40 + 7 * number % 200, 60 + 31 * number % 150, 90)
    picture = Image.new("RGB", (width, height), ground)
    pen = ImageDraw.Draw(picture)
    pen.ellipse((8 + 4 * number % 8, 8, 48 + 4 * number % 8, 48), fill=COLOURS[number % 5])
    if not video:
        pen.rectangle((width - 24, height - 20, width - 8, height - 8), fill=(number % 256, 220, 20))
        pen.text((width - 30, 4), str(number), "white")
    source = MediaFile(f"{video or number}.jpg", 1000 + number, digest([video, number]) * 2)
    return Frame(f"{video}#{number}", np.asarray(picture, np.uint8), float(number) if video else -1.0, source)


def pair_shards(name: str) -> list[list[Planned]]:
    """A shard for each of `VIDEOS`, with every pair of its three frames; 8 of 12 are kept, none of the second shard."""
    captions = [f"the disc is {COLOURS[0]}", f"the disc is {COLOURS[1]}", f"the disc is {HOSTILE}"]
    shards = []
    for video in VIDEOS:
        plan = []
        for at0, at1 in PAIRS:
            identity, key = identity_of(video, at0, at1), sample_key(name, video, at0, at1)
            texts = {"caption0": captions[at0], "caption1": captions[at1]}
            if video == MISSING:
                plan.append(Planned(Rejected(key, "missing-media", f"{video}: absent"), identity, video, words=texts))
            elif video == REPEATS and (at0, at1) == (1, 2):
                plan.append(Planned(Rejected(key, "equal-captions"), identity, video, "test-alike", texts))
            else:
                made = Pair(
                    key=key, group=video, split="test", change="colour",
                    image0=draw(at0, video), image1=draw(at1, video),
                    captions0=(captions[at0], f"{COLOURS[at0]} disc"), captions1=(captions[at1],),
                    provenance={"object": "cup/glass", "frame0": at0},
                )  # fmt: skip
                plan.append(Planned(made, identity, video))
        shards.append(plan)
    return shards


def condition(number: int, usual: str) -> str:
    return {5: HOSTILE, 6: LONG}.get(number, usual)


def ids_of(number: int) -> dict[str, str]:
    return {"reference": f"{number}", "target": f"{number + 1}", "distractor": f"{number + 7}"}


def shards_of(name: str, group_of: Any, make: Any) -> list[list[Planned]]:
    """Nine samples in shards of four; number `GONE` is rejected."""
    plan = []
    for number in range(9):
        key, group = sample_key(name, number), group_of(number)
        missing = Rejected(key, "missing-media", f"{number}.jpg: absent")
        sample = missing if number == GONE else make(number, key=key, group=group)
        plan.append(Planned(sample, identity_of(number), group))
    return [plan[start : start + 4] for start in range(0, len(plan), 4)]


def triplet_shards(name: str, images: bool = True, distractors: bool = True) -> list[list[Planned]]:
    def triplet(number: int, **placed: str) -> Triplet:
        asked, shown = condition(number, f"beside {COLOURS[number % 5]} disc"), ids_of(number)
        captions = {"reference": "a disc on blue ground", "target": f"a disc {asked}", "distractor": asked}
        if not distractors:
            shown["distractor"] = captions["distractor"] = ""
        frames = {part: draw(int(shown[part])) if images and shown[part] else None for part in PARTS}
        return Triplet(
            **placed, split="train", condition=asked, **frames, captions=captions, image_ids=shown,
            provenance={"target": {"subject": "disc"}}, scores={"concreteness": 4.85},
        )  # fmt: skip

    return shards_of(name, "discs-{}".format, triplet)


def entry_of(task: str, number: int) -> dict[str, Any]:
    if task.endswith("object"):
        return {"val_image_id": number}
    return {"image_id": number, "instance_id": str(number), "instance_bbox": [8.0, 8.0, 40.5, 30.0]}


def template_shards(name: str, task: str) -> list[list[Planned]]:
    def template(number: int, **placed: str) -> Template:
        ids = [number * 20 + place for place in range(2 + (9 if task == "focus-attribute" else 14))]
        asked, entries = condition(number, COLOURS[number % 5]), [entry_of(task, image) for image in ids]
        frames = [draw(image) for image in ids]
        about = {"attribute_type": "color"} if task.endswith("attribute") else {"reference_categories": 10}
        return Template(
            **placed, split="test", task=task, condition=asked, reference=frames[0], target=frames[1],
            gallery=tuple(frames[2:]), provenance=about,
            entry={"condition": asked, "gallery": entries[2:], "reference": entries[0], "target": entries[1]},
        )  # fmt: skip

    return shards_of(name, "discs-{}".format, template)


def text_pair_shards(name: str, images: bool = True) -> list[list[Planned]]:
    """Shards of nine text pairs, three of each image."""
    kinds = (("replace", "att"), ("add", "obj"), ("", ""))

    def text_pair(number: int, key: str, group: str) -> TextPair:
        type_, subtype = kinds[number % 3]
        return TextPair(
            key=key, group=group, split="test", image=draw(number // 3) if images else None,
            caption=condition(number, f"a {COLOURS[number % 5]} disc"), negative_caption=f"{number} grey discs on grey",
            type=type_, subtype=subtype, image_id=group,
            provenance={"caption_id": f"c/{number}", "image_id": group, "negative_key": f"n-{number}"},
            scores={"cola_caption": 0.9, "cola_negative": 0.9 - number / 10, "similarity": 0.9} if number else {},
        )  # fmt: skip

    return shards_of(name, lambda number: f"{number // 3}.jpg", text_pair)


VIDEO_SUBSET = {
    "cites": ["@misc{videos2021, title = {Videos}}"],  # these files are that data set
    "source": {"kind": "test-videos", "annotations": "/data/a.json", "media": "/data"},
    "filters": [{"kind": "test-alike"}],
}
MINED_SUBSET = {"source": {"kind": "test-mined", "captions": ["/data/captions.tsv"]}, "split": "train"}


NEGATIVE_SUBSET = {"source": {"kind": "test-negatives", "annotations": "/data/a.json"}}


def gallery_subset(task: str) -> dict[str, Any]:
    return {"source": {"kind": "test-galleries", "annotations": "/data/a.json", "task": task}}
