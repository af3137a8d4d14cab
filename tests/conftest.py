"""A small finished dataset, made by the real writers from drawn pictures: three subsets, all that readers must bear."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image, ImageDraw

from generators.video.frame_pairs import FramePairCandidate
from manifests.candidate import Candidate, CaptionedCandidate
from manifests.canonical import canonical_json, digest, sample_key
from manifests.plan import plan_file, read_slice, write_plan
from manifests.receipt import Receipt
from manifests.recipe import Recipe, Subset, content_of
from manifests.stage import Stage, stage_facts
from shards.contracts import Isolation
from shards.kinds.kind import Sample
from shards.kinds.pair import Pair
from shards.kinds.samples import Drop, Frame, Rejected, Source
from shards.storage import layout
from shards.storage.store import Store
from stages.make import make_shard
from stages.maker import Workshop
from tests import small_genecis

KINDS = {"eq-ag": "action-genome", "eq-gebc": "gebc", "eq-youcook2": "youcook2"}
COLOURS = ("red", "green", "blue")  # of the disc in frame 0, 1 and 2 of every video
HOSTILE = "the disc is <script>alert('twin')</script> & rouge écarlate 红色"
MISSING, REPEATS = "-Gone_1", "-Same_3"  # a video that is not there; a video in which one pair says the same twice
VIDEOS = ("-Disc_0", MISSING, "Disc.2", REPEATS)
PAIRS = ((0, 1), (0, 2), (1, 2))


class DrawnDiscs:
    """A generator whose videos are three drawings each; every pair of them is planned, so that frames are shared."""

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = FramePairCandidate
    libraries: ClassVar[tuple[str, ...]] = ("pillow", "numpy")

    def __init__(self, subset: str) -> None:
        self.subset = subset

    def inputs(self) -> str:
        return "0" * 64

    def plan(self) -> Iterator[FramePairCandidate]:
        for video in VIDEOS:
            for at0, at1 in PAIRS:
                repeats = video == REPEATS and (at0, at1) == (1, 2)
                yield FramePairCandidate(
                    key=sample_key(self.subset, video, at0, at1),
                    group=video,
                    captions0=(self._caption(at0), f"{COLOURS[at0]} disc"),
                    captions1=(self._caption(at0 if repeats else at1),),
                    video=video,
                    at0=float(at0),
                    at1=float(at1),
                    change="colour",
                    provenance=canonical_json({"object": "cup/glass", "frame0": at0, "frame1": at1}).decode(),
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        frames: dict[str, Frame] = {}
        for one in candidates:
            assert isinstance(one, FramePairCandidate)
            if one.video == MISSING:
                yield Rejected(one.key, "missing-media", f"{one.video}: not in the media folder", one.video)
                continue
            for at in (int(one.at0), int(one.at1)):
                if f"{one.video}#{at}" not in frames:
                    frames[f"{one.video}#{at}"] = _draw(one.video, at)
            yield Pair(
                key=one.key,
                group=one.group,
                split=one.split,
                change=one.change,
                image0=frames[f"{one.video}#{int(one.at0)}"],
                image1=frames[f"{one.video}#{int(one.at1)}"],
                captions0=one.captions0,
                captions1=one.captions1,
                provenance=json.loads(one.provenance),
            )

    @staticmethod
    def _caption(at: int) -> str:
        return HOSTILE if at == 2 else f"the disc is {COLOURS[at]}"


class SaysTheSame:
    """A caption filter, so that there is a rejection that a filter made."""

    judges: ClassVar[Any] = "captions"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolation: ClassVar[Isolation] = "thread"

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        return Drop("equal-captions", 1.0) if candidate.captions0[0] == candidate.captions1[0] else candidate


@dataclass(frozen=True)
class SmallDataset:
    """What was built. kept: keys in order, by subset; each subset has 12 candidates, 4 shards, no tar 00001."""

    root: Path
    store: Store
    stages: dict[str, Stage]
    receipts: dict[str, list[Receipt]]
    kept: dict[str, list[str]]


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> SmallDataset:
    folder = tmp_path_factory.mktemp("small")
    store = Store(str(folder / "out"))
    stages: dict[str, Stage] = {}
    receipts: dict[str, list[Receipt]] = {}
    for name, kind in KINDS.items():
        stages[name], receipts[name] = _build(store, name, kind, folder)
    kept = {
        name: [
            one.key for one in DrawnDiscs(name).plan() if one.video != MISSING and one.captions0[0] != one.captions1[0]
        ]
        for name in KINDS
    }
    return SmallDataset(folder / "out", store, stages, receipts, kept)


@pytest.fixture
def small_dataset(_built: SmallDataset, tmp_path: Path) -> SmallDataset:
    """Three subsets of 8 kept pairs each (3 rejected for a missing video, 1 for equal captions), free to be damaged."""
    root = tmp_path / "out"
    shutil.copytree(_built.root, root)
    return replace(_built, root=root, store=Store(str(root)))


@pytest.fixture(scope="session")
def _built_templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _genecis(small_genecis.template_sources, tmp_path_factory)


@pytest.fixture(scope="session")
def _built_triplets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _genecis(small_genecis.triplet_sources, tmp_path_factory)


@pytest.fixture
def small_templates(_built_templates: Path, tmp_path: Path) -> Store:
    """A subset for each task, of 8 kept templates and 1 rejected (`tests.small_genecis`), free to be damaged."""
    return _copy(_built_templates, tmp_path / "templates")


@pytest.fixture
def small_triplets(_built_triplets: Path, tmp_path: Path) -> Store:
    """Subsets ``triplets``, ``two-images`` and ``index-only``, as `small_templates`."""
    return _copy(_built_triplets, tmp_path / "triplets")


def _genecis(sources: Callable[[Path], dict[str, Any]], factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp("genecis")
    store = Store(str(folder / "out"))
    for name, settings in sources(folder).items():
        small_genecis.build(store, name, settings)
    return folder / "out"


def _copy(built: Path, root: Path) -> Store:
    shutil.copytree(built, root)
    return Store(str(root))


def _build(store: Store, name: str, kind: str, folder: Path) -> tuple[Stage, list[Receipt]]:
    subset = Subset.model_validate(
        {"source": {"kind": kind, "annotations": str(folder / "ann.json"), "media": str(folder)}, "shard_size": 3}
    )
    generator = DrawnDiscs(name)
    facts = stage_facts(
        content_of(subset, 0),
        "0" * 64,
        {"kind": kind, "version": generator.version},
        [{"kind": "equal-captions", "version": 1}],
        generator.libraries,
    )
    with store.spool() as spool:
        summary = write_plan(
            generator.plan(),
            generator.candidate,
            subset.shard_size,
            spool,
            lambda spooled, file: store.move_in(spooled, layout.plan(name, file)),
        )
    stage = Stage(
        name=name,
        facts=facts,
        content=digest(facts),
        plan=summary.digest,
        planned=summary.planned,
        shards=len(summary.shards),
        excluded={"unsaid": 2},
    )
    recipe = Recipe(name="small", subsets={name: subset})
    store.write(layout.meta(name, "recipe.json"), recipe.model_dump_json().encode())
    store.write(layout.meta(name, "stage.json"), stage.to_bytes())
    shop = Workshop(subset, generator, [("equal-captions", SaysTheSame())])
    receipts = []
    for planned in summary.shards:
        file, row_group = plan_file(planned.shard)
        with store.open(layout.plan(name, file)) as stream:
            candidates = read_slice(stream, row_group, generator.candidate)
        receipts.append(make_shard(store, stage, planned, candidates, shop))
    return stage, receipts


def _draw(video: str, at: int) -> Frame:
    picture = Image.new("RGB", (96, 72), (40 * VIDEOS.index(video), 90, 120))
    ImageDraw.Draw(picture).ellipse((24 + 4 * at, 12, 72 + 4 * at, 60), fill=COLOURS[at])
    source = Source(f"{video}.mp4", 1000 + at, digest(video) * 2)
    return Frame(f"{video}#{at}", np.asarray(picture, dtype=np.uint8), float(at), source)
