"""A built subset of small pairs of two kinds, and stages that ask about them."""

import json
from pathlib import Path
from typing import Any

from PIL import Image

import twinset
from tests.generators.decisions.tasks import answer as answer_to
from tests.generators.decisions.tasks import say
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.pairs import HumanBaseline
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

PAIRS, SAMPLE = 150, 6


def recipe_of(folder: Path, **settings: Any) -> Recipe:
    """A subset of pairs, and a stage that asks people about a sample of them."""
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    asking = {"kind": "human-baseline", "pairs": "mine", "sample": SAMPLE, **settings}
    subsets = {"mine": {"source": source, "shard_size": PAIRS, "encoding": {"format": "png"}}}
    return parse_recipe({"name": "asked", "stages": {"human-baseline": {"source": asking}}, "subsets": subsets})


def write_pairs(folder: Path, count: int) -> Path:
    """Annotations of pairs ``p0``, ``p1`` …, with their images beside them."""
    records = []
    for n in range(count):
        for side in (0, 1):
            Image.new("RGB", (8, 8), (n, 90 * side, 40)).save(folder / f"{n}-{side}.png")
        names = {f"image{side}": f"{n}-{side}.png" for side in (0, 1)}
        records.append({"id": f"p{n}", **names, "caption0": f"left {n}", "caption1": f"right {n}"})
    (folder / "pairs.json").write_text(json.dumps(records))
    return folder / "pairs.json"


def build_pairs(folder: Path) -> Path:
    """The subset, built. Returns OUT."""
    write_pairs(folder, PAIRS)
    twinset.build(recipe_of(folder), str(folder / "out"))
    return folder / "out"


def asking(out: Path, answers: Path, seed: int = 0, sample: int = PAIRS, **more: Any) -> HumanBaseline:
    """A stage with a file of answers of its own, opened without the engine."""
    settings = {"kind": "human-baseline", "pairs": "mine", "sample": sample, "answers": str(answers), **more}
    source = HumanBaseline.model_validate(settings)
    return source.open(Context("human-baseline", seed=seed, earlier=lambda name: FinishedStage(Store(str(out)), name)))


def answer(recipe: Recipe, out: Path, wrong: set[tuple[int, str]]) -> list[str]:
    """One annotator answers everything, and is wrong in some queries, each by place of its pair and name of the query.

    Returns the keys of the pairs.
    """
    generator: Any = Job(recipe, Store(str(out))).worker("human-baseline").generator
    tasks = generator.gathered.tasks
    pairs = list(dict.fromkeys(task.subject for task in tasks))
    given = []
    for task in tasks:
        missed = (pairs.index(task.subject), json.loads(task.identity)[1]) in wrong
        given.append(answer_to(task, "ann", str(int(task.truth) ^ missed), stage="human-baseline"))
    say(out / FILE, given)
    return pairs
