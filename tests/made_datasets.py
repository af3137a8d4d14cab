"""Small finished subsets of every kind, written by the real writers without an engine."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.made_samples import (
    EQBEN,
    MINED_SUBSET,
    NEGATIVE_SUBSET,
    TASKS,
    VIDEO_SUBSET,
    Planned,
    gallery_subset,
    pair_shards,
    template_shards,
    text_pair_shards,
    triplet_shards,
)
from twinset.cards.describe import describe
from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.page import write_look
from twinset.contracts.canonical import digest
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.samples import Rejected, encode_image
from twinset.contracts.receipt import Receipt
from twinset.contracts.recipe import Encoding, Recipe, content_of, parse_recipe
from twinset.contracts.stage import Facts, Stage, versions_of
from twinset.shards.ledger import read_receipts
from twinset.shards.rows import KEPT, REJECTED, Row, TarWriter, content_digest, fields_of, write_rows
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.finish import summarise, write_index
from twinset.stages.job import StageState


@dataclass
class MadeDataset:
    """A store with finished subsets. kept: keys in order, by subset."""

    store: Store
    root: Any
    stages: dict[str, Stage] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)

    def add(
        self, name: str, subset: dict[str, Any], shards: Iterable[Sequence[Planned]], dataset: str = "", **record: Any
    ) -> None:
        """Write a subset. subset: as in a recipe. dataset: that the JSON of samples names."""
        recipe = parse_recipe({"name": "made", "subsets": {name: subset}})
        source, encoding = recipe[name].source, recipe[name].encoding
        facts = Facts(
            makes=source.makes,
            settings=content_of(recipe[name], 0),
            inputs="0" * 64,
            generator={"kind": source.kind},
            filters=[],
            libraries=versions_of(["numpy"]),
        ).model_dump()
        plans = list(shards)
        stage = Stage(
            name=name, facts=facts, content=digest(facts), plan="p", planned=sum(map(len, plans)), shards=len(plans),
            excluded=record.pop("excluded", {}), **record,
        )  # fmt: skip
        self.store.write(layout.recipe(name), recipe.model_dump_json().encode())
        self.store.write(layout.meta(name, "stage.json"), stage.to_bytes())
        self.stages[name], self.kept[name] = stage, []
        for number, plan in enumerate(plans):
            self._shard(name, number, plan, recipe, encoding, dataset)

    def _shard(
        self, name: str, number: int, plan: Sequence[Planned], recipe: Recipe, encoding: Encoding, dataset: str
    ) -> None:
        source, rows = recipe[name].source, []
        split = recipe[name].split
        with self.store.spool() as spool:
            with TarWriter(spool / "tar") as tar:
                for candidate in plan:
                    made, kind = candidate.made, KINDS[source.makes]
                    row = Row(
                        kind=kind, key=made.key, identity=candidate.identity, group=candidate.group,
                        split=split, verdict=KEPT, **(candidate.terms or source.terms)._asdict(),
                    )  # fmt: skip
                    rows.append(row)
                    if isinstance(made, Rejected):
                        row.verdict, row.filter, row.reason, row.detail = (
                            REJECTED,
                            candidate.judge,
                            made.reason,
                            made.detail,
                        )
                        row.words = candidate.words
                        continue
                    images = {role: encode_image(frame, encoding) for role, frame in made.pictures().items()}
                    row.words, row.images = made.described(), {role: image.sha256 for role, image in images.items()}
                    row.content = content_digest(made, row.images)
                    row.numbers = {name: made.scores[name] for name in made.kind.numbers if name in made.scores}
                    row.sources = tuple(dict.fromkeys(image.source for image in images.values()))
                    self.kept[name].append(made.key)
                    if images:
                        fields = fields_of(made, images, dataset or source.kind, row.terms, encoding.format)
                        tar.add_sample(made.key, fields)
            write_rows(rows, spool / "rows")
            receipt = Receipt(
                shard=number, split=split, content=self.stages[name].content, runtime="any", slice="s",
                planned=len(rows), kept=sum(row.verdict == KEPT for row in rows),
                rejected=dict(Counter(row.reason for row in rows if row.verdict == REJECTED)),
                tar_sha256=tar.sha256, tar_size=tar.size, rows_sha256="", rows_size=1, missing={},
            )  # fmt: skip
            if tar.size:
                self.store.write(layout.tar(name, split, number), (spool / "tar").read_bytes())
            self.store.write(layout.rows(name, number), (spool / "rows").read_bytes())
            self.store.write(layout.receipt(name, number), receipt.to_bytes())

    def take(self, dataset: MadeDataset) -> MadeDataset:
        """Copy the subsets of another dataset; returns this one."""
        shutil.copytree(dataset.root, self.root, dirs_exist_ok=True)
        self.stages |= dataset.stages
        self.kept |= dataset.kept
        return self

    def index(self, name: str) -> IndexSummary:
        """Write what the engine writes of finished shards, and count it."""
        receipts, _ = read_receipts(self.store, name)
        state = StageState(name, self.stages[name], [], receipts, [], {}, {}, {})
        write_index(self.store, state, state.makes)
        return summarise(self.store, state)

    def describe(self, *names: str) -> None:
        for name in names or self.stages:
            describe(self.store, name, self.index(name))
        write_look(self.store, [*(names or self.stages)])

    def text(self, path: str) -> str:
        return self.store.read(path).decode("utf-8")


def _pairs(made: MadeDataset) -> None:
    for name, dataset in EQBEN.items():
        made.add(name, VIDEO_SUBSET, pair_shards(name), dataset, excluded={"unsaid": 2})


def _triplets(made: MadeDataset) -> None:
    made.add("triplets", MINED_SUBSET, triplet_shards("triplets"))
    made.add("two-images", MINED_SUBSET, triplet_shards("two-images", distractors=False))
    made.add("index-only", MINED_SUBSET, triplet_shards("index-only", images=False, distractors=False))


def _text_pairs(made: MadeDataset) -> None:
    made.add("text", NEGATIVE_SUBSET, text_pair_shards("text"))
    made.add("text-index", NEGATIVE_SUBSET, text_pair_shards("text-index", images=False))


def _templates(made: MadeDataset) -> None:
    for task in TASKS:
        made.add(task, gallery_subset(task), template_shards(task, task))


@pytest.fixture(scope="module")
def built(test_sources: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., MadeDataset]:
    """Datasets by what fills them, each written once."""

    @cache
    def build(fill: Callable[[MadeDataset], None]) -> MadeDataset:
        root = tmp_path_factory.mktemp("made")
        made = MadeDataset(Store(str(root)), root)
        fill(made)
        return made

    return build


@pytest.fixture
def made(tmp_path: Path) -> MadeDataset:
    return MadeDataset(Store(str(tmp_path / "out")), tmp_path / "out")


@pytest.fixture
def made_pairs(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Three subsets of 8 kept pairs each (3 rejected for a missing video, 1 for equal captions), in 4 shards."""
    return made.take(built(_pairs))


@pytest.fixture
def made_triplets(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Subsets ``triplets``, ``two-images`` and ``index-only``, of 8 kept triplets and 1 rejected."""
    return made.take(built(_triplets))


@pytest.fixture
def made_text_pairs(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Subsets ``text`` and ``text-index``, of 8 kept text pairs and 1 rejected."""
    return made.take(built(_text_pairs))


@pytest.fixture
def made_templates(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """A subset for each task, of 8 kept templates and 1 rejected."""
    return made.take(built(_templates))
