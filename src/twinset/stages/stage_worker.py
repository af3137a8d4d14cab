"""What the shards of a stage are made with, and on what kind of machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import Recipe, Subset, content_of
from twinset.contracts.source import FILTERS, SOURCES, PlacedSettings
from twinset.contracts.stage import ANY_RUNTIME, Stage, runtime_facts, stage_facts
from twinset.shards.contracts import Context, Source

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
    def parts(self) -> tuple[Source | Filter, ...]:
        """The source and the filters."""
        return (self.generator, *self.filters)

    @property
    def isolated(self) -> bool:
        """Whether shards must be made in processes of their own."""
        return any(part.isolation == "process" for part in self.parts)

    @property
    def on_gpu(self) -> bool:
        """Whether a network of it runs on a GPU."""
        return any(part.runs_on() not in (None, "cpu") for part in self.parts)

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
        """With half the micro-batch, since memory ran out; raises `BuildFailed` where it is one sample already."""
        size = self.generator.batch_size() // 2
        if not size:
            raise BuildFailed(
                f"memory runs out with one sample at a time ({problem}); make fewer shards at a time (--workers 1), "
                "set a smaller resolution, or use a machine with more memory"
            )
        requested = self.requested_runtime or self.runtime
        return replace(self, generator=self.generator.with_micro_batch(size), requested_runtime=requested)

    def facts(self, inputs: str) -> dict[str, Any]:
        """All that decides the bytes of the stage's shards. inputs: `shards.contracts.Source.inputs`."""
        source, libraries, filters = self.source, {*BASE_LIBRARIES, *self.generator.libraries}, []
        for chosen, judge in zip(self.subset.filters, self.filters, strict=True):
            if judge.runs_on() is None:  # a network's libraries belong to the runtime class: GPUs have other builds
                libraries |= set(judge.libraries)
            filters.append(_described(chosen, judge, FILTERS.distribution(chosen.kind)))
        generator = _described(source, self.generator, SOURCES.distribution(source.kind))
        settings = content_of(self.subset, self.recipe.seed)
        return stage_facts(source.makes, settings, inputs, generator, filters, libraries)

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


def open_worker(recipe: Recipe, name: str, context: Context) -> StageWorker:
    """Open the source and the filters of a stage."""
    filters = [cast(Filter, chosen).open() for chosen in recipe[name].filters]
    return StageWorker(recipe, name, cast(Source, recipe[name].source).open(context), filters)


def refuse_mixed_runtimes(where: str, runtimes: set[str]) -> None:
    """Raise `BuildFailed` when shards of one stage were made on machines of different runtime classes.

    runtimes: `contracts.receipt.Receipt.machine` of each. A shard for which memory ran out counts as the class that was
    requested: its receipt names the smaller micro-batch, and a build that runs out of memory now and then must end.
    """
    if len(runtimes) > 1:
        raise BuildFailed(
            f"{where}: made on different types of machine, or with another device, threads or micro_batch (runtime "
            f"classes {', '.join(sorted(runtimes))}): neural networks round differently on each. Resume on the first "
            "type, name another --out, or accept it with --set allow_mixed_runtimes=true"
        )


def _described(settings: PlacedSettings, part: Source | Filter, distribution: str) -> dict[str, Any]:
    """Kind and version of a part, its weights, and the packages, with their versions, that brought it."""
    described = {"kind": part.kind, "version": part.version, "weights": dict(part.weights())}
    brought = {"distribution": distribution, "parts": settings.brought}  # none for twinset's
    return described | {name: value for name, value in brought.items() if value}
