"""People put images in order by how well they fit a text: what models' scores are set beside (EqBen, A.1)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.template import GALLERY
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.decisions.agreement import share_of
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import (
    BlockText,
    Decision,
    Example,
    Layout,
    Option,
    ReviewQuestion,
    TaskCandidate,
)
from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.shards.finished_stage import FinishedStage

#: By what a stage makes, roles of the captions that are asked, each with that of its image.
CAPTIONS: Mapping[str, Mapping[str, str]] = {
    "pair": {"caption0": "image0", "caption1": "image1"},
    "image-text": {"caption": "image"},
    "template": {},
}
REFERENCE = "reference"  # role of the image that is part of the question
FEWEST = 2  # images that have an order
POOL = 2000  # nearest captions, of which one a group is taken
BATCH = 4096  # rows


class RankImages(ReviewQuestion):
    """One text, with or without a reference as first image: the images that fit it best, in order (EqBen, A.1)."""

    name = "rank-images"
    words = BlockText(
        title="Put the best images in order",
        instructions=(
            "Choose the image that fits best, then the next best, as far as you can. Choose one again to take it out.",
            "Images that you leave out count as equal, behind those in order.",
            "Where there is an image above, an image fits that is like it in what the words name.",
            "What the description states counts, not beauty: every thing, how many, what colour, where, who does what.",
        ),
        examples=(
            Example(
                text="The house on the right side of the road",
                answer="a house on the right; a house on the left; a road without a house; a dog",
                why="each shows less of what is said than the one before",
            ),
        ),
    )
    ranked = True

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the images' numbers."""
        first = int(task.images[0].endswith(f"/{REFERENCE}"))
        images = tuple(Option(str(number), "Image", image=number) for number in range(first, len(task.images)))
        return Layout((0,), tuple(range(first)), images)

    def compared(self, value: str) -> str:
        """The image that is put first."""
        return value.split(" ")[0]

    def decide(self, answers: Sequence[Answer]) -> Decision:
        """Images by their mean place; one without a place has the next after the last. Never a tie: equal means are
        ordered by number.
        """
        given = [answer.answer.split(" ") for answer in answers]
        sums = defaultdict[str, int](int)
        for image in {image for order in given for image in order}:
            sums[image] = sum(order.index(image) if image in order else len(order) for order in given)
        return self.decided(" ".join(sorted(sums, key=lambda image: (sums[image], int(image)))), answers)


Row = dict[str, Any]


class ImageRankings(Decisions):
    """Which images fit a text best, in order.

    queries: a stage or subset of pairs, of images with captions, or of templates. sample: how many of its samples are
    asked about, chosen by a hash of seed and key. images: how many are put in order: of a template those of its
    gallery; of a caption its own and, one a group, those whose captions share most words with it. Both captions of a
    pair are asked of the same images.
    """

    kind: Literal["image-rankings"]
    queries: StageName
    sample: int = Field(default=4, ge=1)
    images: int = Field(default=25, ge=FEWEST, le=50)

    asks = RankImages
    paper = EQBEN
    group = "sample"
    reads_subsets = True

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes not in CAPTIONS:
            return f"{earlier.kind} makes {earlier.makes}s; name a stage of {', '.join(CAPTIONS)}s"
        return ""

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        captions = CAPTIONS[str(self.pictured.stage.facts["makes"])]
        own = [f"{image}_sha256" for image in captions.values()] or [
            *("condition", *(f"{role}_sha256" for role in (REFERENCE, "target", *GALLERY)))
        ]
        table = self.pictured.read(["key", "tar", "split", "group", *captions, *own])
        keys = table["key"].to_pylist()
        drawn = nsmallest(self.sample, range(len(keys)), lambda number: self._place(keys[number]))
        for row in table.take(pa.array(sorted(drawn), pa.int64())).to_pylist():
            if not row["tar"]:
                where = f"{self.pictured.where}: an index without images, which nobody can see"
                raise WrongUse(f"{where}; build it with its images")
            if captions:
                images = self._alike(row, table, captions)
                yield from (self._task(row, role, images) for role in captions)
            else:
                gallery = [role for role in ("target", *GALLERY) if row[f"{role}_sha256"]][: self.images]
                yield self._task(row, "condition", [(row, role) for role in (REFERENCE, *gallery)])

    def _place(self, key: str) -> float:
        return share_of(f"image rankings {self.stage.seed}", key)

    def _alike(self, row: Row, table: pa.Table, captions: Mapping[str, str]) -> list[tuple[Row, str]]:
        """The images of a sample, then those of other groups whose captions have most words in common with its own:
        intersection over union of their words, of equal ones by the hash of their keys.
        """
        words = {word for role in captions for word in _words(row[role])}

        def distance(shown: tuple[Row, str]) -> tuple[float, float]:
            own = _words(shown[0][shown[1]])
            return -len(own & words) / max(len(own | words), 1), self._place(shown[0]["key"])

        every = (sample for batch in table.to_batches(max_chunksize=BATCH) for sample in batch.to_pylist())
        candidates = ((sample, role) for sample in every if sample["group"] != row["group"] for role in captions)
        chosen, seen, groups = list[tuple[Row, str]](), set[str](), set[str]()
        for sample, role in [*((row, role) for role in captions), *nsmallest(POOL, candidates, distance)]:
            image = captions[role]
            sha256 = sample[f"{image}_sha256"]
            if sha256 not in seen and (sample is row or sample["group"] not in groups):
                chosen.append((sample, image))
            seen.add(sha256)
            groups.add(sample["group"])
            if len(chosen) == self.images:
                break
        return chosen

    def _task(self, row: Row, role: str, images: list[tuple[Row, str]]) -> TaskCandidate:
        return self.task(
            row["key"],
            role,
            texts=(row[role],),
            images=[(f"{sample['key']}/{image}", sample["tar"], sample[f"{image}_sha256"]) for sample, image in images],
            subject=row["key"],
            split=row["split"],
            group=row["key"],
        )

    @cached_property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.queries)


def _words(caption: str) -> set[str]:
    return {*caption.lower().split()}


def places_of(task: TaskCandidate, choice: str) -> list[int]:
    """How many images a decision puts before each image of a task that is ranked, in their order."""
    order = choice.split(" ")
    options = RankImages().layout(task).options
    return [order.index(option.value) if option.value in order else len(order) for option in options]


def query_of(task: TaskCandidate) -> str:
    """Role of the text that a task asks about."""
    return str(json.loads(task.identity)[1])
