"""Builds of the engine from sources that a test chooses."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.stages import drawn_sources
from twinset.contracts import doors
from twinset.contracts.candidate import Candidate
from twinset.contracts.receipt import Receipt
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.contracts.stage import Stage
from twinset.shards.plan import PlannedShard, plan_file, read_slice
from twinset.shards.records import read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.finish import write_index
from twinset.stages.job import Job, StageState, StageWorker, state_of
from twinset.stages.make import write_shard
from twinset.stages.plan import prepare

Scenes = Sequence[Sequence[Any]]


@dataclass
class Build:
    """A planned subset and the means to make its shards."""

    job: Job
    name: str
    stage: Stage
    worker: StageWorker = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.worker, self.store = self.job.worker(self.name), self.job.store

    @property
    def planned(self) -> list[PlannedShard]:
        return read_planned(self.store, self.worker.home)

    def candidates(self, shard: int) -> list[Candidate]:
        file, row_group = plan_file(shard)
        with self.store.open(layout.plan(self.worker.home, file)) as stream:
            return read_slice(stream, row_group, self.worker.source.candidate)

    def make(self, shard: int) -> Receipt:
        return write_shard(self.store, self.stage, self.planned[shard], self.candidates(shard), self.worker)

    def make_all(self) -> list[Receipt]:
        return [self.make(number) for number in self.state().todo]

    def state(self) -> StageState:
        return state_of(self.store, self.worker.home, self.worker.source.media_files())

    def indexed(self) -> StageState:
        """Its state, once its index is written."""
        state = self.state()
        write_index(self.store, state, self.worker.source.makes, self.worker.source.row_schema)
        return state


@pytest.fixture(scope="session")
def _package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    drawn_sources.install(folder)
    return folder


@pytest.fixture(autouse=True)
def drawn(_package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kinds of `tests.stages.drawn_sources`, here and in child processes."""
    monkeypatch.syspath_prepend(str(_package))
    doors.all_installed.cache_clear()
    yield
    drawn_sources.forget()
    doors.all_installed.cache_clear()


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """A folder with a media file for the videos ``a`` to ``g``."""
    folder = tmp_path / "media"
    (folder / "trouble").mkdir(parents=True)
    for video in "abcdefg":
        (folder / f"{video}.mp4").write_bytes(video.encode() * 100)
    return folder


@pytest.fixture
def greys(media: Path) -> Callable[..., dict[str, Any]]:
    """Settings of a subset of scenes: ``greys(name, scenes, shard_size=2, filters=(), **source)``."""

    def subset(
        name: str, scenes: Scenes, shard_size: int = 2, filters: Sequence[str] = (), **source: Any
    ) -> dict[str, Any]:
        annotations = media.parent / f"{name}.json"
        annotations.write_text(json.dumps(scenes))
        settings = {"kind": "test-greys", "annotations": str(annotations), "media": str(media), **source}
        chosen = [{"kind": kind} for kind in filters]
        return {"source": settings, "filters": chosen, "shard_size": shard_size, "encoding": {"format": "png"}}

    return subset


def recipe_of(subsets: Mapping[str, Any], stages: Mapping[str, Any] | None = None, **settings: Any) -> Recipe:
    """A recipe of plain values."""
    return parse_recipe({"name": "drawn", "max_missing": 1, "subsets": subsets, "stages": stages or {}, **settings})


@pytest.fixture
def planned_build(greys: Any, tmp_path: Path) -> Callable[..., Build]:
    """Plans a subset of scenes in a folder of the test: ``planned_build(scenes, shard_size=2, filters=(), …)``."""

    def build(
        scenes: Scenes, *arguments: Any, out: str = "out", name: str = "eq-x", seed: int = 0, **source: Any
    ) -> Build:
        recipe = recipe_of({name: greys(name, scenes, *arguments, **source)}, seed=seed)
        job = Job(recipe, Store(str(tmp_path / out)))
        return Build(job, name, prepare(job, name))

    return build


@pytest.fixture
def no_cards(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Builds write cards of one word instead of drawing and plotting; what each time they would have: cards, a page."""
    described: list[list[str]] = [[]]

    def describe(store: Store, name: str, summary: Any) -> None:
        described[-1].append(name)
        store.write(f"{name}/README.md", b"card")

    def write_look(store: Store, names: Iterable[str]) -> None:
        described[-1].append(" and ".join(sorted(names)))
        described.append([])
        store.write("look.html", b"page")

    def write_overview(store: Store, names: Iterable[str]) -> None:
        store.write("README.md", b"card of all")

    monkeypatch.setattr("twinset.cards.describe.describe", describe)
    monkeypatch.setattr("twinset.cards.page.write_look", write_look)
    monkeypatch.setattr("twinset.cards.publication.write_overview", write_overview)
    return described


@pytest.fixture
def files_below() -> Callable[[Path], dict[str, bytes]]:
    """Relative path -> content of every file that must be equal in two equal datasets (so not the logs)."""

    def read(root: Path) -> dict[str, bytes]:
        paths = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
        return {name: path.read_bytes() for name, path in paths.items() if "_meta/log/" not in name}

    return read


@pytest.fixture
def trouble(media: Path) -> Callable[..., None]:
    """What goes wrong with a video from now on (`drawn_sources._meet_trouble`); nothing any more where it is empty."""

    def set_trouble(video: str, what: str = "") -> None:
        file = media / "trouble" / video
        with suppress(FileNotFoundError):
            file.unlink()
        if what:
            file.write_text(what)

    return set_trouble
