"""A recipe being built below OUT: resolved once in a process, each generator and filter made once."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from functools import lru_cache, partial

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import Recipe, recipe_from_json
from twinset.contracts.recipe.allowed import refuse_other_answers
from twinset.contracts.source import Need
from twinset.contracts.stage import Stage
from twinset.shards.contracts import Context, Source
from twinset.shards.finished_stage import FinishedStage, earlier_stage
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.stage_worker import StageWorker, open_worker, refuse_other_versions
from twinset.stages.status import StageState


class Job:
    """A recipe and the store that it is built in."""

    def __init__(self, recipe: Recipe, store: Store) -> None:
        self.recipe, self.store = recipe, store
        self.settled: dict[str, StageState] = {}  # stages that this process has brought to their end
        self._workers: dict[str, StageWorker] = {}
        self._lock = threading.Lock()  # stages run side by side

    def only(self, names: Collection[str]) -> Job:
        """The same job for some subsets and the stages that they read."""
        part = Job(self.recipe.only(names), self.store)
        part.settled, part._workers, part._lock = self.settled, self._workers, self._lock
        return part

    def worker(self, name: str) -> StageWorker:
        """Source and filters of a stage, opened once."""
        with self._lock:
            if name not in self._workers:
                self._refuse_other_writes(name)
                stage = self.recipe[name]
                known_as, seed = stage.known_as or name, self.recipe.seed
                context = Context(known_as, stage.split, seed, self.earlier, self.store, stage.encoding)
                self._workers[name] = open_worker(self.recipe, name, context)
            return self._workers[name]

    def _refuse_other_writes(self, name: str) -> None:
        """Raise `WrongUse` where a part of a stage would write outside of OUT, twinset's cache and what is allowed."""
        for key, part in _parts(self.recipe, name):
            for setting, mark, place in part.places():
                if mark.what == "cache":
                    refuse_other_answers(f"{key}.{setting}", place, self.store.root)

    def earlier(self, stage: str) -> FinishedStage:
        """As `shards.finished_stage.earlier_stage`."""
        return earlier_stage(self.store, self.recipe, stage)


def check_inputs(recipe: Recipe, needs: Collection[Need], names: Collection[str] = ()) -> None:
    """Fail before any work when an input of the recipe is absent.

    names: stages to check; all when empty.
    """
    for name in names or recipe.all:
        source = recipe[name].source
        if not isinstance(source, Source):
            raise WrongUse(f"{recipe.key(name)}.source: {type(source).__name__} cannot be opened; correct its package")
        for key, part in _parts(recipe, name):
            part.check_inputs(key, needs)


def check_devices(recipe: Recipe, names: Collection[str] = ()) -> None:
    """Fail before any work when a build on this machine needs a GPU and finds none; workers of pools check theirs.

    names: as `check_inputs`.
    """
    for name in names or recipe.all:
        for key, part in _parts(recipe, name):
            part.check_device(key)


def not_found(recipe: Recipe) -> list[str]:
    """The models and devices of a recipe that are not on this machine, each with what to do about it."""
    found = list[str]()
    for name in recipe.all:
        for key, part in _parts(recipe, name):
            for check in (partial(part.check_inputs, key, ["models"]), partial(part.check_device, key)):
                try:
                    check()
                except (WrongUse, ImportError, OSError) as error:
                    found.append(str(error))
    return found


def _parts(recipe: Recipe, name: str) -> Iterator[tuple[str, Source | Filter]]:
    """The source and the filters of a stage that can be opened, by key in the recipe."""
    for key, part in recipe[name].settings().items():
        if isinstance(part, Source | Filter):
            yield f"{recipe.key(name)}.{key}", part


def recorded_recipe(store: Store, home: str) -> Recipe:
    """The recipe that a stage below OUT was last built with."""
    path = layout.recipe(home)
    try:
        recipe = recipe_from_json(store.read(path))
    except FileNotFoundError as error:
        raise WrongUse(f"{store.root}/{path}: absent; run the same build again") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise WrongUse(f"{store.root}/{path}: damaged ({error}); run the same build again") from error
        raise WrongUse(f"{store.root}/{path}: cannot be used on this machine: {error}") from error
    if home not in map(recipe.home, recipe.all):
        raise WrongUse(f"{store.root}/{path}: a recipe without {home}; run the build of {home} again")
    return recipe


def job_of(store: Store, home: str) -> tuple[Job, str]:
    """The job that a stage below OUT belongs to, and the stage's name in it."""
    return Job(recorded_recipe(store, home), store), home.rsplit("/", 1)[-1]


def worker_of(store: Store, home: str, stage: Stage) -> StageWorker:
    """The worker of a planned stage on a machine that knows nothing but OUT; opened once a process.

    Raises `BuildFailed` when this machine would make other bytes than planned.
    """
    recipe = store.read(layout.recipe(home))
    with _opening:  # two threads would open it twice
        return _worker_of(store.root, home, recipe, stage.content)


def forget_workers() -> None:
    """Have this process open its workers again: what they remember of folders of media may no longer hold."""
    with _opening:
        _worker_of.cache_clear()


_opening = threading.Lock()


@lru_cache(maxsize=8)
def _worker_of(root: str, home: str, _recipe: bytes, _content: str) -> StageWorker:
    store = Store(root)
    job, name = job_of(store, home)
    check_inputs(job.recipe, ("media", "models"), [name])
    worker = job.worker(name)
    refuse_other_versions(planned_stage(store, home), worker, job.recipe.seed)
    return worker.on_this_machine()
