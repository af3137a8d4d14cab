"""Builds of one small subset by the real maker, from drawings that a test chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from generators.video.frame_pairs import FramePairCandidate
from manifests.candidate import Candidate
from manifests.canonical import digest, sample_key, sha256_of_file
from manifests.plan import PlannedShard, plan_file, read_slice, write_plan
from manifests.receipt import Receipt
from manifests.recipe import Subset
from manifests.stage import Stage, stage_facts
from shards.contracts import Isolation
from shards.kinds.kind import Sample
from shards.kinds.pair import Pair
from shards.kinds.samples import Frame, Rejected, Source
from shards.media.media_folder import MediaFolder
from shards.records import read_planned
from shards.storage import layout
from shards.storage.store import Store
from stages.make import make_shard
from stages.maker import NamedFilter, Workshop
from stages.status import Progress, progress

Scene = tuple[str, int, int]


@dataclass
class Drawn:
    """A generator whose scene (VIDEO, GREY0, GREY1) is a pair of even pictures of these two grey levels.

    A scene's captions tell the grey levels, so that equal scenes of two videos are duplicates. The media file
    ``VIDEO.mp4`` must lie in ``media`` or the scene is rejected. made: videos in order.
    """

    name: str
    media: Path
    scenes: Sequence[Scene]
    splits: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = FramePairCandidate
    libraries: ClassVar[tuple[str, ...]] = ()

    def inputs(self) -> str:
        return "0" * 64

    def plan(self) -> Iterator[FramePairCandidate]:
        for video, grey0, grey1 in self.scenes:
            yield FramePairCandidate(
                key=sample_key(self.name, video, grey0, grey1),
                group=video,
                split=self.splits.get(video, "test"),
                captions0=(f"grey {grey0}",),
                captions1=(f"grey {grey1}",),
                video=video,
                at0=float(grey0),
                at1=float(grey1),
                change="grey",
                provenance="{}",
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        frames: dict[str, Frame] = {}
        for one in candidates:
            assert isinstance(one, FramePairCandidate)
            self.made.append(one.video)
            file = MediaFolder(self.media).find(one.video)
            if file is None:
                yield Rejected(one.key, "missing-media", "absent", one.video)
                continue
            sha256, size = sha256_of_file(file)
            source = Source(file.name, size, sha256)
            for grey in (one.at0, one.at1):
                pixels = np.full((16, 24, 3), int(grey), np.uint8)
                frames.setdefault(f"{one.video}#{grey}", Frame(f"{one.video}#{grey}", pixels, grey, source))
            yield Pair(
                key=one.key,
                group=one.group,
                split=one.split,
                change=one.change,
                image0=frames[f"{one.video}#{one.at0}"],
                image1=frames[f"{one.video}#{one.at1}"],
                captions0=one.captions0,
                captions1=one.captions1,
                provenance={},
            )


@dataclass
class Build:
    """A planned subset and the means to make its shards."""

    store: Store
    stage: Stage
    generator: Drawn
    shop: Workshop

    @property
    def planned(self) -> list[PlannedShard]:
        return read_planned(self.store, self.stage.name)

    def candidates(self, shard: int) -> list[Candidate]:
        file, row_group = plan_file(shard)
        with self.store.open(layout.plan(self.stage.name, file)) as stream:
            return read_slice(stream, row_group, FramePairCandidate)

    def make(self, shard: int) -> Receipt:
        return make_shard(self.store, self.stage, self.planned[shard], self.candidates(shard), self.shop)

    def make_all(self) -> list[Receipt]:
        return [self.make(number) for number in self.state().todo]

    def state(self) -> Progress:
        return progress(self.store, self.stage, self.planned, MediaFolder(self.generator.media))


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """A folder with a media file for the videos ``a`` to ``f``."""
    folder = tmp_path / "media"
    folder.mkdir()
    for video in "abcdef":
        (folder / f"{video}.mp4").write_bytes(video.encode() * 100)
    return folder


@pytest.fixture
def planned_build(media: Path) -> Callable[..., Build]:
    """Plans a subset of scenes: ``planned_build(store, name, scenes, shard_size=2, filters=(), splits={}, seed=0)``."""

    def build(
        store: Store,
        name: str,
        scenes: Sequence[Scene],
        shard_size: int = 2,
        filters: Sequence[NamedFilter] = (),
        splits: dict[str, str] | None = None,
        seed: int = 0,
    ) -> Build:
        source: dict[str, Any] = {"kind": "youcook2", "annotations": str(media / "none.json"), "media": str(media)}
        subset = Subset.model_validate({"source": source, "shard_size": shard_size, "encoding": {"format": "png"}})
        generator = Drawn(name, media, scenes, splits or {})
        with store.spool() as spool:
            summary = write_plan(
                generator.plan(),
                FramePairCandidate,
                shard_size,
                spool,
                lambda spooled, file: store.move_in(spooled, layout.plan(name, file)),
            )
        facts = stage_facts({"seed": seed}, "0" * 64, {"kind": "drawn", "version": 1}, [], ())
        stage = Stage(
            name=name,
            facts=facts,
            content=digest(facts),
            plan=summary.digest,
            planned=summary.planned,
            shards=len(summary.shards),
            excluded={},
        )
        store.write(layout.meta(name, "stage.json"), stage.to_bytes())
        return Build(store, stage, generator, Workshop(subset, generator, filters))

    return build


@pytest.fixture
def files_below() -> Callable[[Path], dict[str, bytes]]:
    """Relative path -> content of every file that must be equal in two equal datasets (so not the logs)."""

    def read(root: Path) -> dict[str, bytes]:
        found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if "/_meta/log/" not in name}

    return read
