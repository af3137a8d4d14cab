"""Sources and filters of these tests, as an installed package brings them: quickly made, and in trouble on demand."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from tests.made_recipe import write_package
from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import identity_of, sample_key, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Rejected, Score, Verdict
from twinset.contracts.parts import Filter, OutOfMemory
from twinset.contracts.source import AnnotationFile, MediaFolderPath
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import MediaFolder

ENTRY_POINTS = {
    "twinset.sources": {
        "test-greys": "drawn_sources:Greys",
        "test-words": "drawn_tables:Words",
        "test-longer": "drawn_tables:Longer",
        "test-said": "drawn_tables:Said",
    },
    "twinset.filters": {"test-dark": "drawn_sources:Dark", "test-apart": "drawn_sources:Apart"},
}

#: Called by `Greys.make` once its samples are made, in this process: what happens while a worker is late.
MEANWHILE: list[Callable[[], None]] = []
#: Names of what was made in this process, in order.
MADE: list[str] = []
#: Sizes of the batches that a pass in this process was asked for.
PASSES: list[int] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(CaptionedCandidate):
    """A planned scene."""

    video: str
    grey0: int
    grey1: int


class Greys(Source):
    """Scenes (VIDEO, GREY0, GREY1) in JSON, each a pair of even pictures; equal ones of two videos are duplicates.

    media: must hold ``VIDEO.mp4``, or the scene is rejected; its folder ``trouble`` says what goes wrong with a video.
    """

    kind: Literal["test-greys"]
    annotations: AnnotationFile
    media: MediaFolderPath
    licence: str = "other: mine"
    splits: dict[str, str] = Field(default={})
    micro_batch: int = 0

    execution = ("micro_batch",)
    reasons: ClassVar[Mapping[str, str]] = {"missing-media": "the video is absent"}
    version = 1
    candidate = Scene

    def runs_on(self) -> str | None:
        return "cpu" if self.batch_size() else None

    def inputs(self) -> str:
        return sha256_of_file(self.annotations)[0]

    def plan(self) -> Iterator[Scene]:
        for video, grey0, grey1 in json.loads(self.annotations.read_bytes()):
            yield Scene(
                key=sample_key(self.stage.name, video, grey0, grey1),
                identity=identity_of(video, grey0, grey1),
                group=video,
                split=self.splits.get(video, self.stage.split),
                captions0=(f"grey {grey0}",),
                captions1=(f"grey {grey1}",),
                video=video,
                grey0=grey0,
                grey1=grey1,
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        PASSES.append(len(candidates))
        made = [self._make(cast(Scene, scene)) for scene in candidates]
        for happens in MEANWHILE[:]:
            happens()
        yield from made

    def _make(self, scene: Scene) -> Pair | Rejected:
        MADE.append(scene.video)
        _meet_trouble(self.media / "trouble" / scene.video, self.batch_size())
        file = self.media_files().find(scene.video)
        if file is None:
            return Rejected(scene.key, "missing-media", "absent", scene.video)
        sha256, size = sha256_of_file(file.path)
        source = MediaFile(file.name, size, sha256)
        first, second = (
            Frame(f"{scene.video}#{grey}", np.full((16, 24, 3), grey, np.uint8), float(grey), source)
            for grey in (scene.grey0, scene.grey1)
        )
        return Pair(**scene.placed, change="grey", image0=first, image1=second, provenance={})

    def media_files(self) -> MediaFolder:
        return MediaFolder(self.media)


def _meet_trouble(file: Path, micro_batch: int) -> None:
    """What goes wrong with a video, as its file of trouble says; nothing where there is none."""
    if not file.is_file():
        return
    what, *numbers = file.read_text().split()
    with open(f"{file}.{what}", "a+") as stream:  # a letter each time
        stream.write("x")
        met = stream.tell()
    if what == "kill" and (not numbers or met <= int(numbers[0])):  # so many times, or always
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "raise":
        raise LookupError("a mistake in a source")
    elif what == "leave":
        raise SystemExit(int(numbers[0]))
    elif what == "sleep":  # until the trouble is over
        while file.is_file():
            time.sleep(0.01)
    elif what == "memory" and micro_batch > int(numbers[0]):
        raise OutOfMemory("tried to allocate 2 GiB")
    elif what == "errno" and met <= int(numbers[1]):  # so many times
        raise OSError(int(numbers[0]), os.strerror(int(numbers[0])))


class Dark(Filter):
    """Drops frames that are brighter than 100, and scores the others."""

    kind: Literal["test-dark"]

    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"bright": "the picture is bright"}
    version = 1

    def judge(self, frames: Sequence[Frame]) -> Sequence[Verdict]:
        greys = [float(frame.pixels.mean()) for frame in frames]
        return [Drop("bright", grey) if grey > 100 else Score("grey", grey) for grey in greys]


class Apart(Filter):
    """Drops pairs whose pictures are one grey level apart."""

    kind: Literal["test-apart"]

    judges = "pairs"
    reasons: ClassVar[Mapping[str, str]] = {"near": "both pictures are nearly the same grey"}
    version = 1

    def judge(self, pairs: Sequence[Pair]) -> Sequence[Verdict]:
        distances = [abs(float(pair.image0.pixels.mean() - pair.image1.pixels.mean())) for pair in pairs]
        return [Drop("near", distance) if distance <= 1 else Keep() for distance in distances]


def forget() -> None:
    """Empty what this process remembers."""
    for remembered in (MADE, PASSES, MEANWHILE):
        remembered.clear()  # type: ignore[attr-defined]


def install(folder: Path) -> None:
    """Write what an installed package leaves on the import path, for this process and its children."""
    points = {
        group: {kind: f"tests.stages.{place}" for kind, place in classes.items()}
        for group, classes in ENTRY_POINTS.items()
    }
    write_package(folder, "twinset-tests", points)
