"""What every part has (isolation, version, reasons of what it leaves out), and the contract that filters keep.

`twinset.shards.contracts` has those of sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import PrivateAttr

from twinset.contracts.doors import Registry
from twinset.contracts.source import PlacedSettings

Isolation = Literal["thread", "process"]
EXAMPLES = 20  # records left out that are named


class LeftOut(Counter[str]):
    """Records of a source that its plan left out, counted by reason; the first twenty are kept with their place."""

    def __init__(self) -> None:
        super().__init__()
        self.examples: list[tuple[str, str]] = []

    def clear(self) -> None:
        super().clear()
        self.examples = []

    def add(self, reason: str, place: str) -> None:
        """Count one record. place: where it stands, such as ``captions.tsv line 12``."""
        self[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((reason, place))


class Part(PlacedSettings):
    """What sources and filters are: settings from a recipe, and the work that is done with them.

    Heavy libraries are imported by the methods that need them: a recipe is read on machines that lack them.

    version: raised when bytes or verdicts change. isolation: ``process`` when its libraries need one of their own
    (Blender, dlib, spaCy). libraries: distributions whose version can change the bytes. A part with a network has
    settings ``threads`` and ``micro_batch``, samples of one pass, which decide a sample's last bits.
    """

    version: ClassVar[int]
    isolation: ClassVar[Isolation] = "thread"
    libraries: ClassVar[tuple[str, ...]] = ()

    _micro_batch: int = PrivateAttr(0)

    def runs_on(self) -> str | None:
        """``cpu`` or the GPU's model name where results depend on the machine; None where they do not."""
        return None

    def weights(self) -> Mapping[str, str]:
        """Digests of the weights that it works with, by name."""
        return {}

    def batch_size(self) -> int:
        """The micro-batch, smaller than its setting for a shard for which memory ran out; 0 without a network."""
        return self._micro_batch or int(getattr(self, "micro_batch", 0))

    def with_micro_batch(self, micro_batch: int) -> Self:
        """The same with its network as it is loaded, but another micro-batch."""
        smaller = self.model_copy()
        smaller._micro_batch = micro_batch
        return smaller


class OutOfMemory(Exception):
    """Raised by `Source.make` when a pass of its network does not fit: the shard starts again with smaller ones."""


class Filter(Part):
    """Decides what is kept; its fields are its settings.

    judges: ``captions`` before anything is decoded, ``frames`` one by one, or whole ``pairs``; only filters of frames
    fit samples of every kind.
    """

    judges: ClassVar[Literal["captions", "frames", "pairs"]]

    def judge(self, what: Any) -> Any:
        """A verdict on each frame (`Sequence[Frame]`) or pair (`Sequence[Pair]`), in order; or, of captions, one
        `CaptionedCandidate` with fewer captions, or a `Drop`. The same again, alone, or in another order."""
        raise NotImplementedError(f"{type(self).__name__} has no method judge")

    def open(self) -> Self:
        """This filter, to judge with: a copy, since what it loads belongs to one worker."""
        return self.model_copy()

    def how_judged(self) -> str:
        """Markdown for the card's section on how samples were made, such as which detectors; empty for nothing."""
        return ""


FILTERS = Registry[type[Filter]]("filter", Filter, "twinset.filters", "twinset.filters")


def check_settings(settings: PlacedSettings) -> None:
    """Settings survive the way to a worker, and each reason is explained."""
    travelled = type(settings).model_validate(settings.model_dump(mode="json"))
    assert travelled == settings, "settings change on the way through JSON; use types that pydantic writes and reads"
    for reason, meaning in settings.meanings.items():
        assert str(meaning).strip(), f"reason {reason!r} of {type(settings).__name__}.reasons has no meaning"
