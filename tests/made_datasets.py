"""Small finished subsets of every kind, written by the real writers without an engine, from drawn pictures."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageDraw

from cards.describe import describe
from cards.summary import IndexSummary
from manifests import registry
from manifests.canonical import canonical_json, digest, identity_of, sample_key
from manifests.parquet import read_parquet
from manifests.receipt import Receipt
from manifests.recipe import Encoding, Recipe, content_of, parse_recipe
from manifests.source import AnnotationFile, FilterSettings, MediaFolderPath, Reference, SourceSettings
from manifests.stage import Stage, stage_facts
from shards.kinds.encoded import encode_image
from shards.kinds.fields import content_digest, fields_of
from shards.kinds.kind import Sample
from shards.kinds.pair import Pair
from shards.kinds.registry import KINDS
from shards.kinds.samples import Frame, Rejected, Source
from shards.kinds.template import Template
from shards.kinds.triplet import PARTS, Triplet
from shards.rows import KEPT, REJECTED, Row, schema_of, write_rows
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_writer import TarWriter

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
PAPER = Reference("A Paper", "https://paper.example", "@inproceedings{paper2020, title = {A Paper}}")


class Videos(SourceSettings):
    """A source of pairs that follows a paper."""

    kind: Literal["test-videos"]
    annotations: AnnotationFile
    media: MediaFolderPath
    licence: str = "free <b>for</b> tests"

    reference = Reference("Drawn videos", "https://videos.example", "@misc{videos2021, title = {Videos}}")
    paper = PAPER
    group = "video"
    reasons: ClassVar[Mapping[str, str]] = {
        "missing-media": "the video is not in the media folder",
        "unsaid": "pairs without words",
    }

    def notes(self) -> str:
        return "* Frames are taken by the rule of docs/frames.md.\n"


class Folder(SourceSettings):
    """A source of pairs that follows no paper and says nothing of itself."""

    kind: Literal["test-folder"]
    media: MediaFolderPath
    licence: str = "mine"


class Mined(SourceSettings):
    """A source of triplets, which reports how it mined."""

    kind: Literal["test-mined"]
    captions: tuple[AnnotationFile, ...]
    licence: str = "CC0-1.0 <b>captions</b>"

    makes = "triplet"
    reference = Reference("Captions", "", "@misc{captions2018, title = {Captions}}")
    paper = PAPER
    group = "subject"
    verb = "mined from"
    reports = ("mining.json",)

    def how_made(self, reports: Mapping[str, Any]) -> str:
        found = reports.get("mining.json")
        return f"Mined {found['mined']:,} relations." if found else "Mined somehow."


class Galleries(SourceSettings):
    """A source of templates."""

    kind: Literal["test-galleries"]
    annotations: AnnotationFile
    task: str
    licence: str = "free"

    makes = "template"
    paper = PAPER
    group = "reference"

    def introduction(self) -> str:
        return f'They ask the task "{self.task}".'


class Scores(SourceSettings):
    """A source of a table."""

    kind: Literal["test-scores"]
    licence: str = "mine"

    makes = "table"
    reference = Reference("Somebody's scores")


class Alike(FilterSettings):
    """A filter, so that there is a reason of one."""

    kind: Literal["test-alike"]

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "both captions say the same"}


CLASSES = (Videos, Folder, Mined, Galleries, Scores, Alike)


@pytest.fixture(scope="module", autouse=True)
def test_sources() -> Iterator[None]:
    """Sources and a filter of these tests, as if a package had brought them."""

    @cache
    def installed(group: str) -> dict[str, EntryPoint]:
        base = SourceSettings if group == "twinset.sources" else FilterSettings
        classes = {
            str(one.model_fields["kind"].annotation.__args__[0]): one for one in CLASSES if issubclass(one, base)
        }
        own = {
            kind: EntryPoint(kind, f"tests.made_datasets:{found.__name__}", group) for kind, found in classes.items()
        }
        return {**{one.name: one for one in entry_points(group=group)}, **own}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_installed", installed)
        yield


@dataclass(frozen=True)
class Planned:
    """A candidate as far as its rows show it. made: the sample, or why there is none. words: of a rejected one."""

    made: Sample | Rejected
    identity: str
    group: str
    judge: str = "generator"
    words: dict[str, str] = field(default_factory=dict)


@dataclass
class MadeDataset:
    """A store with finished subsets. kept: keys in order, by subset."""

    store: Store
    root: Any
    stages: dict[str, Stage] = field(default_factory=dict)
    receipts: dict[str, list[Receipt]] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)

    def add(
        self, name: str, subset: dict[str, Any], shards: Iterable[Sequence[Planned]], dataset: str = "", **record: Any
    ) -> None:
        """Write a subset. subset: as in a recipe. dataset: that the JSON of samples names."""
        recipe = parse_recipe({"name": "made", "subsets": {name: subset}})
        source, encoding = recipe[name].source, recipe[name].encoding
        facts = stage_facts(source.makes, content_of(recipe[name], 0), "0" * 64, {"kind": source.kind}, [], ("numpy",))
        plans = list(shards)
        stage = Stage(
            name=name, facts=facts, content=digest(facts), plan="p", planned=sum(map(len, plans)), shards=len(plans),
            excluded=record.pop("excluded", {}), **record,
        )  # fmt: skip
        self.store.write(layout.meta(name, "recipe.json"), recipe.model_dump_json().encode())
        self.store.write(layout.meta(name, "stage.json"), stage.to_bytes())
        self.stages[name], self.receipts[name], self.kept[name] = stage, [], []
        for number, plan in enumerate(plans):
            self._shard(name, number, plan, recipe, encoding, dataset)

    def _shard(
        self, name: str, number: int, plan: Sequence[Planned], recipe: Recipe, encoding: Encoding, dataset: str
    ) -> None:
        source, rows = recipe[name].source, []
        split = recipe[name].split
        with self.store.spool() as spool:
            with TarWriter(spool / "tar") as tar:
                for one in plan:
                    made, kind = one.made, KINDS[source.makes]
                    row = Row(
                        kind=kind, key=made.key, identity=one.identity, group=one.group, split=split, verdict=KEPT
                    )
                    rows.append(row)
                    if isinstance(made, Rejected):
                        row.verdict, row.filter, row.reason, row.detail = REJECTED, one.judge, made.reason, made.detail
                        row.words = one.words
                        continue
                    images = {role: encode_image(frame, encoding) for role, frame in made.pictures().items()}
                    row.words, row.images = made.described(), {role: image.sha256 for role, image in images.items()}
                    row.content = content_digest(made, row.images)
                    row.sources = tuple(dict.fromkeys(image.source for image in images.values()))
                    self.kept[name].append(made.key)
                    if images:
                        fields = fields_of(made, images, dataset or source.kind, source.licence, encoding.format)
                        tar.add_sample(made.key, fields)
            write_rows(rows, spool / "rows")
            receipt = Receipt(
                shard=number, split=split, content=self.stages[name].content, runtime="any", slice="s",
                planned=len(rows), kept=sum(row.verdict == KEPT for row in rows),
                rejected=dict(Counter(row.reason for row in rows if row.verdict == REJECTED)),
                tar_sha256=tar.sha256, tar_size=tar.size, rows_sha256="", rows_size=1, missing={},
            )  # fmt: skip
            if tar.size:
                self.store.write(layout.tar(name, split, number), (spool / "tar").read_bytes())
            self.store.write(layout.rows(name, number), (spool / "rows").read_bytes())
            self.store.write(layout.receipt(name, number), receipt.to_bytes())
        self.receipts[name].append(receipt)

    def take(self, other: MadeDataset) -> MadeDataset:
        """Copy the subsets of another dataset; returns this one."""
        shutil.copytree(other.root, self.root, dirs_exist_ok=True)
        for mine, its in ((self.stages, other.stages), (self.receipts, other.receipts), (self.kept, other.kept)):
            mine.update(its)  # type: ignore[arg-type]
        return self

    def index(self, name: str) -> IndexSummary:
        """Write what the engine writes of finished shards, and count it."""
        return index_of(self.store, name)

    def describe(self, *names: str) -> None:
        """Index and describe subsets, all when none is named."""
        describe(self.store, {name: self.index(name) for name in names or self.stages})

    def text(self, path: str) -> str:
        """A file as text."""
        return self.store.read(path).decode("utf-8")


def index_of(store: Store, name: str) -> IndexSummary:
    """Write index, rejections and sizes of a subset from the rows of its receipts."""
    facts = json.loads(store.read(layout.meta(name, "stage.json")))["facts"]
    kind = KINDS[facts["makes"]]
    tables, tars, splits = [], dict[str, int](), Counter[str]()
    by_filter: defaultdict[str, Counter[str]] = defaultdict(Counter)
    size = planned = 0
    numbers = sorted(store.names(layout.meta(name, "receipts")))
    for file in numbers:
        receipt = Receipt.model_validate_json(store.read(layout.meta(name, f"receipts/{file}")))
        with store.open(layout.rows(name, receipt.shard)) as stream:
            table = read_parquet(stream)
        tar = layout.tar(name, receipt.split, receipt.shard).removeprefix(f"{name}/") if receipt.tar_size else ""
        tars |= {tar: receipt.kept} if tar else {}
        splits[receipt.split] += receipt.kept
        size, planned = size + receipt.tar_size, planned + receipt.planned
        tables.append(table.append_column("tar", pa.array([tar] * len(table), pa.string())))
    table = pa.concat_tables(tables) if tables else pa.schema([*schema_of(kind), ("tar", pa.string())]).empty_table()
    kept, rejected = (table.filter(pc.equal(table["verdict"], verdict)) for verdict in (KEPT, REJECTED))
    for row in rejected.select(["filter", "reason"]).to_pylist():
        by_filter[row["filter"]][row["reason"]] += 1
    with store.spool() as spool:
        for file, part in (("index.parquet", kept), ("rejections.parquet", rejected)):
            pq.write_table(part, spool / file)
            store.write(layout.meta(name, file), (spool / file).read_bytes())
    store.write(layout.meta(name, "sizes.json"), canonical_json(tars))
    return IndexSummary(
        planned=planned,
        kept=len(kept),
        rejected=dict(sum(by_filter.values(), Counter[str]())),
        by_filter=by_filter,
        kept_by_split={split: count for split, count in splits.items() if count},
        shards=len(numbers),
        tars=tars,
        bytes=size,
        images=tuple(role for role in kind.images if pc.any(pc.not_equal(kept[f"{role}_sha256"], "")).as_py()),
    )


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
    source = Source(f"{video or number}.jpg", 1000 + number, digest([video, number]) * 2)
    return Frame(f"{video}#{number}", np.asarray(picture, np.uint8), float(number) if video else -1.0, source)


def pair_shards(name: str) -> list[list[Planned]]:
    """A shard for each of `VIDEOS`, with every pair of its three frames; 8 of 12 are kept, none of the second shard."""
    captions = [f"the disc is {COLOURS[0]}", f"the disc is {COLOURS[1]}", f"the disc is {HOSTILE}"]
    shards = []
    for video in VIDEOS:
        plan = []
        for at0, at1 in PAIRS:
            identity, key = identity_of(video, at0, at1), sample_key(name, video, at0, at1)
            said = {"caption0": captions[at0], "caption1": captions[at1]}
            if video == MISSING:
                plan.append(Planned(Rejected(key, "missing-media", f"{video}: absent"), identity, video, words=said))
            elif video == REPEATS and (at0, at1) == (1, 2):
                plan.append(Planned(Rejected(key, "equal-captions"), identity, video, "test-alike", said))
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
    """The condition of a triplet or template; those of numbers 5 and 6 are hostile."""
    return {5: HOSTILE, 6: LONG}.get(number, usual)


def ids_of(number: int) -> dict[str, str]:
    """Images of the triplet with a number."""
    return {"reference": f"{number}", "target": f"{number + 1}", "distractor": f"{number + 7}"}


def triplet_shards(
    name: str, images: bool = True, distractors: bool = True, count: int = 9, ids: Any = ids_of
) -> list[list[Planned]]:
    """Shards of four triplets, of which number `GONE` is rejected."""
    found = []
    for number in range(count):
        key, group, shown = sample_key(name, number), f"discs-{number}", dict(ids(number))
        if number == GONE:
            found.append(Planned(Rejected(key, "missing-media", f"{number}.jpg: absent"), identity_of(number), group))
            continue
        asked = condition(number, f"beside {COLOURS[number % 5]} disc")
        captions = {"reference": "a disc on blue ground", "target": f"a disc {asked}", "distractor": asked}
        if not distractors:
            shown["distractor"] = captions["distractor"] = ""
        frames = {part: draw(int(shown[part])) if images and shown[part] else None for part in PARTS}
        made = Triplet(
            key=key, group=group, split="train", condition=asked, **frames, captions=captions, images=shown,
            provenance={"target": {"subject": "disc"}}, scores={"concreteness": 4.85},
        )  # fmt: skip
        found.append(Planned(made, identity_of(number), group))
    return [found[start : start + 4] for start in range(0, count, 4)]


def entry_of(task: str, number: int) -> dict[str, Any]:
    """An image as GeneCIS's files name it."""
    if task.endswith("object"):
        return {"val_image_id": number}
    return {"image_id": number, "instance_id": str(number), "instance_bbox": [8.0, 8.0, 40.5, 30.0]}


def template_shards(name: str, task: str, entry: Any = entry_of) -> list[list[Planned]]:
    """Shards of four templates, nine in all, of which number `GONE` is rejected."""
    found = []
    for number in range(9):
        key, group = sample_key(name, number), f"discs-{number}"
        if number == GONE:
            found.append(Planned(Rejected(key, "missing-media", f"{number}.jpg: absent"), identity_of(number), group))
            continue
        ids = [number * 20 + place for place in range(2 + (9 if task == "focus-attribute" else 14))]
        asked, entries = condition(number, COLOURS[number % 5]), [entry(task, one) for one in ids]
        frames = [draw(one) for one in ids]
        about = {"attribute_type": "color"} if task.endswith("attribute") else {"reference_categories": 10}
        made = Template(
            key=key, group=group, split="test", task=task, condition=asked, reference=frames[0], target=frames[1],
            gallery=tuple(frames[2:]), provenance=about,
            entry={"condition": asked, "gallery": entries[2:], "reference": entries[0], "target": entries[1]},
        )  # fmt: skip
        found.append(Planned(made, identity_of(number), group))
    return [found[start : start + 4] for start in range(0, 9, 4)]


VIDEO_SUBSET = {
    "source": {"kind": "test-videos", "annotations": "/data/a.json", "media": "/data"},
    "filters": [{"kind": "test-alike"}],
}
MINED_SUBSET = {"source": {"kind": "test-mined", "captions": ["/data/captions.tsv"]}, "split": "train"}


def gallery_subset(task: str) -> dict[str, Any]:
    """A subset of templates as in a recipe."""
    return {"source": {"kind": "test-galleries", "annotations": "/data/a.json", "task": task}}


def _pairs(made: MadeDataset) -> None:
    for name, dataset in EQBEN.items():
        made.add(name, VIDEO_SUBSET, pair_shards(name), dataset, excluded={"unsaid": 2})


def _triplets(made: MadeDataset) -> None:
    made.add("triplets", MINED_SUBSET, triplet_shards("triplets"))
    made.add("two-images", MINED_SUBSET, triplet_shards("two-images", distractors=False))
    made.add("index-only", MINED_SUBSET, triplet_shards("index-only", images=False, distractors=False))


def _templates(made: MadeDataset) -> None:
    for task in TASKS:
        made.add(task, gallery_subset(task), template_shards(task, task))


@pytest.fixture(scope="module")
def built(test_sources: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., MadeDataset]:
    """Datasets by what fills them, each written once."""

    @cache
    def build(fill: Callable[[MadeDataset], None]) -> MadeDataset:
        root = tmp_path_factory.mktemp("made")
        made = MadeDataset(Store(str(root)), root)
        fill(made)
        return made

    return build


@pytest.fixture
def made(tmp_path: Path) -> MadeDataset:
    """A dataset without subsets."""
    return MadeDataset(Store(str(tmp_path / "out")), tmp_path / "out")


@pytest.fixture
def made_pairs(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Three subsets of 8 kept pairs each (3 rejected for a missing video, 1 for equal captions), in 4 shards."""
    return made.take(built(_pairs))


@pytest.fixture
def made_triplets(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Subsets ``triplets``, ``two-images`` and ``index-only``, of 8 kept triplets and 1 rejected."""
    return made.take(built(_triplets))


@pytest.fixture
def made_templates(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """A subset for each task, of 8 kept templates and 1 rejected."""
    return made.take(built(_templates))
