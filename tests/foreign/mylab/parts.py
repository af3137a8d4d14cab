"""What builds: a source of pairs, a filter, a review question, an exporter."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from twinset import (
    Drop,
    Filter,
    Frame,
    NamedPairCandidate,
    NamedPairSource,
    Reference,
    Score,
    Verdict,
)
from twinset.contracts.kinds.pair import PAIR
from twinset.generators.decisions.pairs import PairScreening
from twinset.generators.decisions.question import BlockText, Layout, Option, ReviewQuestion, TaskCandidate
from twinset.shards.export.formats import Format, Shard


class Squares(NamedPairSource):
    """Pairs of ``NAME IMAGE0 IMAGE1`` of a JSON list."""

    kind: Literal["mylab-squares"]
    version = 1
    reference = Reference("Squares")
    reasons: ClassVar[Mapping[str, str]] = {**NamedPairSource.reasons, "odd": "records that are not three names"}

    def plan(self) -> Iterator[NamedPairCandidate]:
        """In the order of the file."""
        for number, record in enumerate(json.loads(self.annotations.read_bytes())):
            if len(record) != 3:
                self.excluded.add("odd", f"record {number}")
                continue
            name, *images = record
            yield self.planned(
                identity=(name,),
                images=(images[0], images[1]),
                captions=([f"a dark {name}"], [f"a light {name}"]),
                change="brightness",
                provenance={"name": name},
            )


class Bright(Filter):
    """Drops images that are brighter than ``most``."""

    kind: Literal["mylab-bright"]
    most: float = 250

    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"bright": "an image is too bright"}
    version = 1

    def judge(self, frames: Sequence[Frame]) -> Sequence[Verdict]:
        """The mean grey level is the score of what it keeps."""
        means = [float(frame.pixels.mean()) for frame in frames]
        return [Drop("bright", mean) if mean > self.most else Score("grey", mean) for mean in means]


class Fits(ReviewQuestion):
    """Whether a pair fits."""

    name = "mylab-fits"
    words = BlockText(title="Does the pair fit?", instructions=("Look at both.",))
    shuffled = False
    drops: ClassVar[Mapping[str, str]] = {"no": "screened-out"}
    reasons: ClassVar[Mapping[str, str]] = {"dull": "it is dull"}

    def layout(self, task: TaskCandidate) -> Layout:
        return Layout((0, 1), (0, 1), (Option("yes", "Yes"),), (Option("no", "No"),))


class Screening(PairScreening):
    """Asks it about the pairs of a stage."""

    kind: Literal["mylab-screening"]  # type: ignore[assignment]

    asks = Fits


def write_list(shards: Iterator[Shard], folder: Path) -> None:
    """A line a pair: its key and both captions."""
    with (folder / "pairs.tsv").open("w") as stream:
        for shard in shards:
            for sample in shard.samples:
                stream.write(f"{sample.key}\t{sample.texts['caption0']}\t{sample.texts['caption1']}\n")


LIST = Format((PAIR,), write_list)
