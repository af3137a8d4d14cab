"""What the shards of a subset are made with, and on what kind of machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from manifests.errors import BuildFailed
from manifests.recipe import Subset
from manifests.stage import ANY_RUNTIME, runtime_class
from shards.contracts import Batching, CaptionFilter, FrameFilter, Generator, PairFilter

NamedFilter = tuple[str, CaptionFilter | FrameFilter | PairFilter]


@dataclass(frozen=True, slots=True)
class Workshop:
    """All that is needed to make the shards of one subset.

    filters: by kind, in the recipe's order. runtime: the runtime class (`manifests.stage.runtime_class`) of this
    machine as it works here. asked: that with the micro-batch of the recipe, where this one has a smaller one.
    """

    subset: Subset
    generator: Generator
    filters: Sequence[NamedFilter]
    runtime: str = ANY_RUNTIME
    asked: str = ""

    @property
    def micro_batch(self) -> int:
        """Samples a forward pass; 0 where the generator does not make them in batches."""
        return self.generator.micro_batch if isinstance(self.generator, Batching) else 0

    def on_this_machine(self) -> Workshop:
        """With the runtime class of this machine: of the generator's device, else of the first filter's with one."""
        judges = [judge for _, judge in self.filters]
        devices = [device for maker in (self.generator, *judges) if (device := device_of(maker)) is not None]
        if not devices:
            return replace(self, runtime=ANY_RUNTIME)
        if isinstance(self.generator, Batching):
            runtime = runtime_class(True, devices[0], self.generator.threads, self.generator.micro_batch)
        else:
            runtime = runtime_class(True, devices[0])
        return replace(self, runtime=runtime)

    def halved(self, problem: str) -> Workshop:
        """With half the micro-batch, since memory ran out; raises `BuildFailed` where it is one sample already."""
        if not isinstance(self.generator, Batching) or self.generator.micro_batch == 1:
            raise BuildFailed(
                f"memory runs out with one sample at a time ({problem}); make fewer shards at a time (--workers 1), "
                "set a smaller resolution, or use a machine with more memory"
            )
        smaller = replace(self, generator=self.generator.with_micro_batch(self.generator.micro_batch // 2))
        return replace(smaller.on_this_machine(), asked=self.asked or self.runtime)


def device_of(maker: object) -> str | None:
    """On what a generator or filter rounds as no other machine does; None where all give the same bytes."""
    device: str | None = maker.device() if hasattr(maker, "device") else None
    return device
