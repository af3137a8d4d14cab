"""A recipe being built below OUT, and what makes the shards of each stage: opened once in a process."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, cast

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import Recipe, Subset, content_of, recipe_from_json
from twinset.contracts.recipe.allowed import refuse_other_answers
from twinset.contracts.source import Need
from twinset.contracts.stage import ANY_RUNTIME, Facts, Stage, runtime_facts, versions_of
from twinset.shards.contracts import Context, Source
from twinset.shards.finished_stage import FinishedStage, earlier_stage
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.status import StageState, state_of

BASE_LIBRARIES = ("numpy", "pillow", "pyarrow")  # the last writes the rows


@dataclass(frozen=True)
class StageWorker:
    """All that is needed to make the shards of one stage of a recipe.

    filters: opened, in the recipe's order. requested_runtime: the runtime class before the micro-batch was halved
    because memory ran out; empty when it was not.
    """

    recipe: Recipe
    name: str
    generator: Source
    filters: Sequence[Filter]
    requested_runtime: str = ""

    @property
    def home(self) -> str:
        """Where it lies below OUT."""
        return self.recipe.home(self.name)

    @property
    def subset(self) -> Subset:
        """The settings of the stage."""
        return self.recipe[self.name]

    @property
    def source(self) -> Source:
        """The settings of the stage's source."""
        return cast(Source, self.subset.source)

    @property
    def parts(self) -> Sequence[Source | Filter]:
        """The source and the filters."""
        return (self.generator, *self.filters)

    @property
    def isolated(self) -> bool:
        """Whether shards must be made in processes of their own."""
        return any(part.isolation == "process" for part in self.parts)

    @cached_property
    def machine(self) -> dict[str, Any]:
        """What the runtime class is the digest of: of the first part with a network; empty where there is none."""
        for part in self.parts:
            if (device := part.runs_on()) is not None:
                size = part.batch_size()
                batch = {"threads": getattr(part, "threads", 1), "micro_batch": size} if size else {}
                return runtime_facts(device, **batch)
        return {}

    @property
    def runtime(self) -> str:
        """The runtime class (`contracts.stage.runtime_class`) of this machine as it works here."""
        return digest(self.machine) if self.machine else ANY_RUNTIME

    def halved(self, problem: str) -> StageWorker:
        """With half the micro-batches, since memory ran out; raises `BuildFailed` where each is one sample already."""
        source, *filters = (
            part.with_micro_batch(size // 2) if (size := part.batch_size()) > 1 else part for part in self.parts
        )
        if [source, *filters] == [*self.parts]:
            raise BuildFailed(
                f"memory runs out with one sample at a time ({problem}); make fewer shards at a time (--workers 1), "
                "set a smaller resolution, or use a machine with more memory"
            )
        requested = self.requested_runtime or self.runtime
        generator, judges = cast(Source, source), cast(Sequence[Filter], filters)
        return replace(self, generator=generator, filters=judges, requested_runtime=requested)

    def facts(self, inputs: str) -> dict[str, Any]:
        """All that decides the bytes of the stage's shards. inputs: `shards.contracts.Source.inputs`."""
        # The libraries of a filter's network belong to the runtime class: GPU workers have other builds.
        libraries = {name for judge in self.filters if judge.runs_on() is None for name in judge.libraries}
        libraries |= {*BASE_LIBRARIES, *self.generator.libraries}
        return Facts(
            makes=self.source.makes,
            settings=content_of(self.subset, self.recipe.seed),
            inputs=inputs,
            generator=_described(self.generator),
            filters=[_described(judge) for judge in self.filters],
            libraries=versions_of(libraries),
        ).model_dump()

    def refuse_other_versions(self, stage: Stage) -> None:
        """Raise `BuildFailed` when this machine would make other bytes than planned."""
        # The plan holds all that annotations say, and workers need none; scenes are made from assets again.
        planned = stage.facts
        here = self.facts(self.generator.inputs() if self.source.synthetic else planned["inputs"])
        if digest(here) == stage.content:
            return
        differing = [key for key in planned if key != "libraries" and planned[key] != here.get(key)]
        differing += [
            f"{name} ({version} in the plan, {here['libraries'].get(name, 'absent')} here)"
            for name, version in planned["libraries"].items()
            if here["libraries"].get(name) != version
        ]
        raise BuildFailed(
            f"{stage.name}: this worker would make other bytes than planned, it differs in {', '.join(differing)}; "
            "bring its checkout, its environment (make env) and its inputs (weights of a model, manifest of assets) to "
            "those that planned, or build again to plan with these"
        )


def refuse_mixed_runtimes(where: str, runtimes: set[str]) -> None:
    """Raise `BuildFailed` when shards of one stage were made on machines of different runtime classes.

    runtimes: `contracts.receipt.Receipt.machine` of each, which names no micro-batch that memory made smaller.
    """
    if len(runtimes) > 1:
        raise BuildFailed(
            f"{where}: made on different types of machine, or with another device, threads or micro_batch (runtime "
            f"classes {', '.join(sorted(runtimes))}): neural networks round differently on each. Resume on the first "
            "type, name another --out, or accept it with --set allow_mixed_runtimes=true"
        )


def _described(part: Source | Filter) -> dict[str, Any]:
    """Kind and version of a part, its weights, and the packages, with their versions, that brought it."""
    inner = {path.rstrip("."): one.package for path, one in part.parts() if path and one.package}
    brought = {"distribution": part.package, "parts": inner}  # none for twinset's
    described = {"kind": part.kind, "version": part.version, "weights": dict(part.weights())}
    return described | {name: value for name, value in brought.items() if value}


class Job:
    """A recipe and the store that it is built in. settled: stages that this process has brought to their end."""

    def __init__(self, recipe: Recipe, store: Store) -> None:
        self.recipe, self.store = recipe, store
        self.settled: dict[str, StageState] = {}
        self._workers: dict[str, StageWorker] = {}
        self._lock = threading.Lock()  # stages run side by side

    def worker(self, name: str) -> StageWorker:
        """Source and filters of a stage, opened once.

        Raises `WrongUse` where one would write outside of OUT, twinset's cache and what is allowed.
        """
        with self._lock:
            if name not in self._workers:
                for key, part in _parts(self.recipe, name):
                    for setting, mark, place in part.places():
                        if mark.what == "cache":
                            refuse_other_answers(f"{key}.{setting}", place, self.store.root)
                stage = self.recipe[name]
                known_as, seed = stage.known_as or name, self.recipe.seed
                context = Context(known_as, stage.split, seed, self.earlier, self.store, stage.encoding)
                filters = [chosen.open() for chosen in stage.filters]
                source = cast(Source, stage.source).open(context)
                self._workers[name] = StageWorker(self.recipe, name, source, filters)
            return self._workers[name]

    def state(self, name: str, shards: range | None = None) -> StageState:
        """The shards of a stage by state. shards: to look at; all when None."""
        return state_of(self.store, self.recipe.home(name), self.worker(name).source.media_files(), shards)

    def earlier(self, stage: str) -> FinishedStage:
        """As `shards.finished_stage.earlier_stage`."""
        return earlier_stage(self.store, self.recipe, stage)


def check_inputs(recipe: Recipe, needs: Collection[Need], names: Collection[str] = ()) -> None:
    """Fail before any work when an input of the recipe, or of the stages that are named, is absent."""
    for name in names or recipe.all:
        for key, part in _parts(recipe, name):
            part.check_inputs(key, needs)


def check_devices(recipe: Recipe, names: Collection[str] = ()) -> None:
    """Fail before any work when a build on this machine needs a GPU and finds none; workers of pools check theirs."""
    for name in names or recipe.all:
        for key, part in _parts(recipe, name):
            part.check_device(key)


def not_found(recipe: Recipe) -> list[str]:
    """The models and devices of a recipe that are not on this machine, each with what to do about it."""
    problems = list[str]()
    for name in recipe.all:
        for key, part in _parts(recipe, name):
            for check in (partial(part.check_inputs, key, ["models"]), partial(part.check_device, key)):
                try:
                    check()
                except (WrongUse, ImportError, OSError) as error:
                    problems.append(str(error))
    return problems


def _parts(recipe: Recipe, name: str) -> Iterator[tuple[str, Source | Filter]]:
    """The source and the filters of a stage, by key in the recipe."""
    for key, part in recipe[name].settings().items():
        yield f"{recipe.key(name)}.{key}", cast("Source | Filter", part)


def recorded_recipe(store: Store, home: str) -> Recipe:
    """The recipe that a stage below OUT was last built with."""
    path = layout.recipe(home)
    try:
        recipe = recipe_from_json(store.read(path))
    except FileNotFoundError as error:
        raise WrongUse(f"{store.root}/{path}: absent; run the same build again") from error
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{store.root}/{path}: damaged, or cannot be used on this machine: {error}") from error
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
    with _opening:  # two threads would open it twice
        return _worker_of(store.root, home, store.read(layout.recipe(home)), stage.content)


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
    job.worker(name).refuse_other_versions(planned_stage(store, home))
    return job.worker(name)
