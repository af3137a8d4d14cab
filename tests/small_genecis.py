"""Small finished subsets of triplets and templates, made by the real maker from drawn scenes of two discs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image, ImageDraw

from manifests.candidate import Candidate
from manifests.canonical import digest, sample_key
from manifests.plan import plan_file, read_slice, write_plan
from manifests.recipe import Recipe, Subset, content_of
from manifests.stage import Stage, stage_facts
from shards.contracts import Isolation
from shards.kinds.kind import Sample
from shards.kinds.samples import Frame, Rejected, Source
from shards.kinds.template import Template
from shards.kinds.triplet import Triplet
from shards.storage import layout
from shards.storage.store import Store
from stages.make import make_shard
from stages.maker import Workshop

SIZES = ((96, 72), (64, 96), (80, 80))  # pixels of drawn pictures: landscape, portrait and square take turns
COLOURS = ("red", "green", "blue", "orange", "purple")
HOSTILE = "on <script>alert('x')</script> & rouge écarlate 红色 | `a`"
LONG = "beside a word and another " * 400  # more than 10,000 characters
MISSING = 3  # the number whose image is not there
TASKS = ("focus-attribute", "change-attribute", "focus-object", "change-object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered(Candidate):
    """The sample with a number."""

    number: int


@dataclass
class Discs:
    """A generator of ``count`` samples; number `MISSING` is rejected, and two conditions are hostile.

    settings: of the source, as in a recipe.
    """

    name: str
    settings: Mapping[str, Any]
    count: int
    split: str
    excluded: Counter[str] = field(default_factory=Counter)

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = Numbered
    libraries: ClassVar[tuple[str, ...]] = ("pillow", "numpy")

    def inputs(self) -> str:
        return "0" * 64

    def plan(self) -> Iterator[Numbered]:
        for number in range(self.count):
            key = sample_key(self.name, number)
            yield Numbered(key=key, group=f"discs-{number}", split=self.split, number=number)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        for one in candidates:
            assert isinstance(one, Numbered)
            if one.number == MISSING:
                yield Rejected(one.key, "missing-media", f"{one.number}.jpg: absent", f"{one.number}.jpg")
            else:
                yield self._triplet(one) if self.settings["kind"] == "genecis-triplets" else self._template(one)

    def _triplet(self, one: Numbered) -> Triplet:
        colour = COLOURS[one.number % 5]
        condition = {5: HOSTILE, 6: LONG}.get(one.number, f"beside {colour} disc")
        ids = ids_of(one.number)
        captions = {"reference": "a disc on blue ground", "target": f"a disc {condition}", "distractor": condition}
        if not self.settings.get("distractors"):
            ids["distractor"] = captions["distractor"] = ""
        images = self.settings.get("images") is not None
        frames = {part: draw(int(number)) if images and number else None for part, number in ids.items()}
        return Triplet(
            key=one.key,
            group=one.group,
            split=one.split,
            condition=condition,
            reference=frames["reference"],
            target=frames["target"],
            distractor=frames["distractor"],
            captions=captions,
            images=ids,
            provenance={"draw": one.number, "target": {"subject": "disc", "predicate": "beside"}},
            scores={"concreteness": 4.85 + one.number / 100},
        )

    def _template(self, one: Numbered) -> Template:
        task = f"{self.settings['task']}-{'object' if self.settings['kind'] == 'genecis-objects' else 'attribute'}"
        distractors = 9 if task == "focus-attribute" else 14
        ids = [one.number * 20 + place for place in range(2 + distractors)]
        entries = [entry_of(task, number) for number in ids]
        condition = {5: HOSTILE, 6: LONG}.get(one.number, COLOURS[one.number % 5])
        frames = [draw(number) for number in ids]
        return Template(
            key=one.key,
            group=one.group,
            split=one.split,
            task=task,
            condition=condition,
            reference=frames[0],
            target=frames[1],
            gallery=tuple(frames[2:]),
            entry={
                "condition": condition,
                "gallery": entries[2:],
                "reference": entries[0],
                "target": entries[1],
            },
            provenance={"attribute": COLOURS[one.number % 5], "attribute_type": "color"}
            if task.endswith("attribute")
            else {"reference_categories": 10},
        )


def ids_of(number: int) -> dict[str, str]:
    """Images of the triplet with a number."""
    return {"reference": f"{number}", "target": f"{number + 1}", "distractor": f"{number + 7}"}


def entry_of(task: str, number: int) -> dict[str, Any]:
    """An image as GeneCIS's files name it."""
    if task.endswith("object"):
        return {"val_image_id": number}
    return {"image_id": number, "instance_id": str(number), "instance_bbox": [8.0, 8.0, 40.5, 30.0]}


def draw(number: int) -> Frame:
    """A disc of a colour on a ground that tells the number."""
    width, height = SIZES[number % 3]
    picture = Image.new("RGB", (width, height), (40 + 7 * number % 200, 60 + 31 * number % 150, 90))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((8, 8, 48, 48), fill=COLOURS[number % 5])
    pen.rectangle((width - 24, height - 20, width - 8, height - 8), fill=(number % 256, 220, 20))
    pen.text((width - 30, 4), str(number), "white")
    source = Source(f"{number}.jpg", 1000 + number, hashlib.sha256(str(number).encode()).hexdigest())
    return Frame(f"#{number}", np.asarray(picture, dtype=np.uint8), -1.0, source)


def triplet_sources(folder: Path) -> dict[str, dict[str, Any]]:
    """Sources of subsets of triplets, by name: with distractors, without, and without images."""
    words = {"captions": [str(folder / "captions.tsv")], "concreteness": str(folder / "ratings.txt")}
    triplets = {"kind": "genecis-triplets", **words, "images": str(folder), "licence": "CC0-1.0 <b>captions</b>"}
    return {
        "triplets": {**triplets, "distractors": True},
        "two-images": triplets,
        "index-only": {**triplets, "images": None},
    }


def template_sources(folder: Path) -> dict[str, dict[str, Any]]:
    """Sources of subsets of templates, by the names of their tasks."""
    found: dict[str, dict[str, Any]] = {}
    for task in TASKS:
        about, kind = task.split("-")
        places = {"annotations": str(folder / "a.json"), "media": str(folder)}
        taxonomy = {"taxonomy": str(folder / "t.json")} if kind == "attribute" else {}
        found[task] = {"kind": f"genecis-{kind}s", "task": about, **places, **taxonomy}
    return found


def build(store: Store, name: str, settings: dict[str, Any], count: int = 9) -> Stage:
    """Plan a subset and make its shards of 4; returns the stage."""
    split = "train" if settings["kind"] == "genecis-triplets" else "test"
    subset = Subset.model_validate({"source": settings, "count": count, "shard_size": 4, "split": split})
    generator = Discs(name, settings, count, split)
    facts = stage_facts(
        content_of(subset, 0), "0" * 64, {"kind": settings["kind"], "version": 1}, [], generator.libraries
    )
    with store.spool() as spool:
        summary = write_plan(
            generator.plan(), Numbered, 4, spool, lambda spooled, file: store.move_in(spooled, layout.plan(name, file))
        )
    stage = Stage(
        name=name,
        facts=facts,
        content=digest(facts),
        plan=summary.digest,
        count=count,
        planned=summary.planned,
        shards=len(summary.shards),
        excluded={},
    )
    recipe = Recipe(name="genecis", subsets={name: subset})
    store.write(layout.meta(name, "recipe.json"), json.dumps(recipe.model_dump(mode="json")).encode())
    store.write(layout.meta(name, "stage.json"), stage.to_bytes())
    for planned in summary.shards:
        file, row_group = plan_file(planned.shard)
        with store.open(layout.plan(name, file)) as stream:
            candidates = read_slice(stream, row_group, Numbered)
        make_shard(store, stage, planned, candidates, Workshop(subset, generator, []))
    return stage
