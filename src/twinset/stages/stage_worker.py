"""What the shards of a stage are made with, and on what kind of machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import Recipe, Subset, content_of
from twinset.contracts.source import PlacedSettings
from twinset.contracts.stage import ANY_RUNTIME, Stage, runtime_facts, stage_facts
from twinset.shards.contracts import Context, Source

BASE_LIBRARIES = ("numpy", "pillow", "pyarrow")  # the last writes the rows


@dataclass(frozen=True, slots=True)
class StageWorker:
    """All that is needed to make the shards of one stage.

    home: where it lies below OUT. filters: by kind, in the recipe's order. runtime: the runtime class
    (`contracts.stage.runtime_class`) of this machine as it works here. requested_runtime: the runtime class before the
    micro-batch was halved because memory ran out; empty when it was not. device: as in the receipt.
    """

    home: str
    subset: Subset
    generator: Source
    filters: Sequence[tuple[str, Filter]]
    runtime: str = ANY_RUNTIME
    requested_runtime: str = ""
    device: str = ""

    @property
    def name(self) -> str:
        """The stage's."""
        return self.home.rsplit("/", 1)[-1]

    @property
    def source(self) -> Source:
        """The settings of the stage's source."""
        return cast(Source, self.subset.source)

    @property
    def isolated(self) -> bool:
        """Whether shards must be made in processes of their own."""
        return "process" in (self.generator.isolation, *(judge.isolation for _, judge in self.filters))

    @property
    def on_gpu(self) -> bool:
        """Whether a network of it runs on a GPU."""
        parts = (self.generator, *(judge for _, judge in self.filters))
        return any(part.runs_on() not in (None, "cpu") for part in parts)

    def on_this_machine(self) -> StageWorker:
        """With the runtime class of this machine: of the generator's device, else of the first filter's with one."""
        facts = self.runtime_facts()
        runtime = digest(facts) if facts else ANY_RUNTIME
        return replace(self, runtime=runtime, device=facts.get("device", ""))

    def runtime_facts(self) -> dict[str, Any]:
        """What the runtime class of this machine is the digest of; empty where no neural network takes part."""
        for part in (self.generator, *(judge for _, judge in self.filters)):
            if (device := part.runs_on()) is not None:
                size = part.batch_size()
                batch = {"threads": getattr(part, "threads", 1), "micro_batch": size} if size else {}
                return runtime_facts(device, **batch)
        return {}

    def halved(self, problem: str) -> StageWorker:
        """With half the micro-batch, since memory ran out; raises `BuildFailed` where it is one sample already."""
        if self.generator.batch_size() <= 1:
            raise BuildFailed(
                f"memory runs out with one sample at a time ({problem}); make fewer shards at a time (--workers 1), "
                "set a smaller resolution, or use a machine with more memory"
            )
        smaller = replace(self, generator=self.generator.with_micro_batch(self.generator.batch_size() // 2))
        return replace(smaller.on_this_machine(), requested_runtime=self.requested_runtime or self.runtime)


def open_worker(recipe: Recipe, name: str, context: Context) -> StageWorker:
    """Source and filters of a stage."""
    subset = recipe[name]
    filters = [(chosen.kind, cast(Filter, chosen).open()) for chosen in subset.filters]
    return StageWorker(recipe.home(name), subset, cast(Source, subset.source).open(context), filters)


def facts_of(worker: StageWorker, seed: int, inputs: str) -> dict[str, Any]:
    """All that decides the bytes of a stage's shards. inputs: `shards.contracts.Source.inputs`."""
    generator, source = worker.generator, worker.subset.source
    libraries = {*BASE_LIBRARIES, *generator.libraries}
    filters = []
    for chosen, (kind, judge) in zip(worker.subset.filters, worker.filters, strict=True):
        if judge.runs_on() is None:  # a network's libraries belong to the runtime class: GPU workers have other builds
            libraries |= set(judge.libraries)
        described = {"kind": kind, "version": judge.version, "weights": dict(judge.weights())}
        filters.append({**described, **_brought(chosen)})
    described = {"kind": source.kind, "version": generator.version, "weights": dict(generator.weights())}
    described |= _brought(source)
    return stage_facts(source.makes, content_of(worker.subset, seed), inputs, described, filters, libraries)


def refuse_other_versions(stage: Stage, worker: StageWorker, seed: int) -> None:
    """Raise `BuildFailed` when this machine would make other bytes than planned."""
    # The plan holds all that annotations say, and workers need none; scenes are made from assets again.
    inputs = worker.generator.inputs() if worker.subset.source.synthetic else stage.facts["inputs"]
    here, planned = facts_of(worker, seed, inputs), stage.facts
    if digest(here) == stage.content:
        return
    differing = [key for key in planned if key != "libraries" and planned[key] != here.get(key)]
    differing += [
        f"{name} ({version} in the plan, {here['libraries'].get(name, 'absent')} here)"
        for name, version in planned["libraries"].items()
        if here["libraries"].get(name) != version
    ]
    raise BuildFailed(
        f"{stage.name}: this worker would make other bytes than planned, it differs in {', '.join(differing)}; bring "
        "its checkout, its environment (make env) and its inputs (weights of a model, manifest of assets) to those "
        "that planned, or build again to plan with these"
    )


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


def _brought(settings: PlacedSettings) -> dict[str, Any]:
    """Packages, with their versions, that brought a kind and its parts: they decide bytes; none for twinset's."""
    parts = {path.rstrip("."): part.package for path, part in settings.parts() if path and part.package}
    packages = {"distribution": settings.package, "parts": parts}
    return {name: value for name, value in packages.items() if value}
