"""People's scores on pairs: four tasks a sampled pair, and who was right in which of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby, product
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.decisions.agreement import counting, share_of
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.generators.decisions.questions import Match
from twinset.generators.decisions.source import Decisions
from twinset.shards.finished_stage import FinishedStage

IMAGES, CAPTIONS = ("image0", "image1"), ("caption0", "caption1")
QUERIES = (*IMAGES, *CAPTIONS)  # what each of the four tasks of a pair shows as its question
PAIR_COLUMNS = ("key", "tar", "split", *CAPTIONS, *(f"{role}_sha256" for role in IMAGES))


class HumanBaseline(Decisions):
    """Four questions about each of some pairs: which caption belongs to either image, which image to either caption.

    pairs: a stage or subset of pairs. sample: how many of its pairs are asked about, chosen by a hash of seed and key;
    all where there are fewer.
    """

    kind: Literal["human-baseline"]
    pairs: StageName
    sample: int = Field(default=500, ge=1)

    group = "pair"
    reads_subsets = True

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "pair":
            return f"people are asked about pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """As `Decisions.tasks`; nobody need look to know what is right: caption i belongs to image i."""
        for tar, rows in groupby(self._sampled.to_pylist(), key=itemgetter("tar")):
            pairs = list(rows)
            # What differs in a pair its index does not say; the JSON beside its images does.
            stored = self.pictured.samples((tar, row["key"]) for row in pairs)
            for row, query in product(pairs, QUERIES):
                roles = (query,) if query in IMAGES else IMAGES
                captions = CAPTIONS if query in IMAGES else (query,)
                yield TaskCandidate(
                    key=sample_key(self.stage.name, row["key"], query),
                    identity=identity_of(row["key"], query),
                    group=row["key"],
                    split=row["split"],
                    question=Match.name,
                    texts=tuple(row[caption] for caption in captions),
                    images=tuple(f"{row['key']}/{role}" for role in roles),
                    image_tars=(tar,) * len(roles),
                    image_sha256s=tuple(row[f"{role}_sha256"] for role in roles),
                    subject=row["key"],
                    kind_name=stored[row["key"]].json.category,
                    truth=query[-1],
                )

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int | None:
        return int(made.choice) if len(task.images) > 1 else None

    def measured(self) -> Mapping[str, Any]:
        """``pairs``: the stage that was asked about and the digest of its index. ``outcomes``: who was right.

        A row of outcomes: pair, kind; annotator, null for what the answers of all came to; right: of each of `QUERIES`,
        null where it was not answered. Answers that settled a disagreement count in what all came to alone.
        """
        now = self.gathered
        found: dict[tuple[str, str | None], dict[str, bool]] = {}
        kinds = {task.subject: task.kind_name for task in now.tasks}
        for task in now.tasks:
            query = json.loads(task.identity)[1]
            given: list[tuple[str | None, str]] = [
                (one.annotator, one.answer)
                for one in counting(task, now.answers.get(task.key, ()))
                if not one.adjudicated
            ]
            if (made := now.decisions.get(task.key)) is not None:
                given.append((None, made.choice))
            for annotator, choice in given:
                found.setdefault((task.subject, annotator), {})[query] = choice == task.truth
        rows = [
            {"pair": pair, "kind": kinds[pair], "annotator": annotator, "right": [right.get(one) for one in QUERIES]}
            for (pair, annotator), right in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        ]
        stage = self.pairs.rstrip("/").rpartition("/")[2]
        return {"pairs": {"stage": stage, "digest": self.pictured.digest, "sampled": len(kinds)}, "outcomes": rows}

    @cached_property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)

    @cached_property
    def _sampled(self) -> pa.Table:
        pairs = self.pictured.read(PAIR_COLUMNS)
        keys = pairs["key"].to_pylist()
        places = {key: share_of(f"human baseline {self.stage.seed}", key) for key in keys}
        drawn = sorted(range(len(keys)), key=lambda row: (places[keys[row]], keys[row]))
        return pairs.take(pa.array(sorted(drawn[: self.sample]), pa.int64()))
