"""Images that people put in order: which ones, what answers come to, and models set beside them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import twinset
from tests.generators.decisions.tasks import answer, insert
from tests.generators.finished_stage import write_index
from tests.tiny_encoders import open_clip_config
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.kinds.template import GALLERY
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Query
from twinset.generators.contract import check_source
from twinset.generators.decisions.answers import FILE, create_tables
from twinset.generators.decisions.question import TaskCandidate
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset_extras.benchmarks.metrics import correlations
from twinset_extras.image_rankings import ImageRankings, RankImages, places_of

WORDS = ("red house", "red car", "blue house", "green tree", "red house by a road")


def recipe_of(folder: Path, **settings: Any) -> Recipe:
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    asking = {"kind": "image-rankings", "queries": "mine", "sample": 1, "images": 5, **settings}
    subsets = {"mine": {"source": source, "encoding": {"format": "png"}}}
    return parse_recipe({"name": "ranked", "stages": {"ranked": {"source": asking}}, "subsets": subsets})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT of pairs "a … left", "a … right"; two of them have one image in common."""
    folder = tmp_path_factory.mktemp("ranked")
    records = []
    for n, words in enumerate(WORDS):
        for side in (0, 1):
            colour = (10, 0, 40) if (n, side) == (1, 0) else (40 * n, 90 * side, 40)
            Image.new("RGB", (8, 8), colour).save(folder / f"{n}-{side}.png")
        names = {f"image{side}": f"{n}-{side}.png" for side in (0, 1)}
        records.append({"id": f"p{n}", **names, "caption0": f"A {words} left", "caption1": f"a {words} right"})
    records[3]["image0"] = records[1]["image0"]
    (folder / "pairs.json").write_text(json.dumps(records))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinset.cards.describe.describe", lambda store, name, of: store.write(f"{name}/README.md", b""))
        twinset.build(recipe_of(folder), str(folder / "out"))
    return folder / "out"


def ranking(**settings: Any) -> ImageRankings:
    return ImageRankings.model_validate({"kind": "image-rankings", "queries": "mine", "answers": "none", **settings})


def opened(out: Path, **settings: Any) -> Any:
    return ranking(**settings).open(Context("ranked", earlier=lambda name: FinishedStage(Store(str(out)), name)))


def test_both_captions_of_a_pair_are_asked_of_its_images_and_those_alike_in_words(out: Path) -> None:
    generator = opened(out, sample=9)
    check_source(ranking(sample=9), generator.stage)
    rows = FinishedStage(Store(str(out)), "mine").read(["key", "caption0"]).to_pylist()
    words_of = {row["key"]: {*row["caption0"].lower().split()} for row in rows}
    tasks: list[TaskCandidate] = generator.gathered.tasks
    assert len(tasks) == 2 * len(WORDS) and {task.question for task in tasks} == {"rank-images"}
    for first, second in zip(tasks[::2], tasks[1::2], strict=True):
        assert first.images == second.images and first.texts[0].endswith("left") and second.texts[0].endswith("right")
        assert first.images[:2] == (f"{first.subject}/image0", f"{first.subject}/image1")
        assert len({*first.image_sha256s}) == len(first.images)
        others = [name.split("/")[0] for name in first.images[2:]]
        assert len({*others}) == len(others) >= 3  # one a group
        words = words_of[first.subject] | {"right"}
        alike = [len(words & words_of[key]) / len(words | words_of[key]) for key in others]
        assert alike == sorted(alike, reverse=True)
    assert len(opened(out, images=3).gathered.tasks[0].images) == 3


def test_of_a_template_its_gallery_is_ranked_against_the_reference(tmp_path: Path) -> None:
    roles = ("reference", "target", *GALLERY)
    rows = [
        {"key": f"t{n}", "tar": "test/00000.tar", "split": "test", "group": f"t{n}", "condition": "same colour"}
        | {f"{role}_sha256": f"{n}{role}" if at < 4 + n else None for at, role in enumerate(roles)}
        for n in range(3)
    ]
    stage = write_index(pa.Table.from_pylist(rows), tmp_path, "templates", 3)
    stage.stage.facts["makes"] = "template"
    tasks = ranking(images=4).open(Context("ranked", earlier=lambda _: stage)).gathered.tasks
    assert [len(task.images) for task in tasks] == [4, 5, 5]
    assert tasks[2].images == tuple(f"t2/{role}" for role in roles[:5])
    layout = RankImages().layout(tasks[1])
    assert layout.images == (0,) and [option.image for option in layout.options] == [1, 2, 3, 4]


def task_of(images: int) -> TaskCandidate:
    names = tuple(f"key{n}/image0" for n in range(images))
    shown = {"images": names, "image_tars": names, "image_sha256s": names, "texts": ("a cat",)}
    return TaskCandidate(key="t", identity="[]", group="t", question="rank-images", subject="t", **shown)


def test_an_answer_is_some_of_the_options_each_once() -> None:
    task, question = task_of(4), RankImages()
    assert all(question.takes(task, value) for value in ("2", "3 0", "0 1 2 3"))
    assert not any(question.takes(task, value) for value in ("", "4", "1 1", "0  1", "0,1", " 0", "0 1 2 3 4"))
    assert places_of(task_of(5), "3 1") == [2, 1, 2, 0, 2], "images without a place tie behind the others"


def test_several_answers_come_to_the_order_of_mean_places() -> None:
    task = task_of(4)
    for choice, orders in {"1 0 2": ["0 1 2", "1 2 0", "1 0 2"], "3 1": ["3", "3 1", "1"]}.items():
        decision = RankImages().decide([answer(task, f"ann-{n}", order) for n, order in enumerate(orders)])
        assert (decision.choice, decision.reason, len(decision.annotators)) == (choice, "", 3)


def test_people_answer_and_models_are_set_beside_them(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = recipe_of(out.parent, sample=2)
    with pytest.raises(WrongUse, match="Expected: a finished stage of image-rankings"):
        open_benchmark("rankings", out)
    with pytest.raises(DecisionsMissing, match="4 of 4 decisions are missing"):
        twinset.build(recipe, str(out), only=["ranked"])
    generator: Any = Job(recipe, Store(str(out))).worker("ranked").source
    tasks = generator.gathered.tasks
    orders = zip(tasks, ("4 0 1 2 3", "0 1", "2", "3"), strict=True)
    given = [answer(task, "ann", order, stage="ranked") for task, order in orders]
    (out / FILE).parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(out / FILE)) as connection:
        create_tables(connection)
        insert(connection, given)
    twinset.build(recipe, str(out), only=["ranked"])

    asked = [query for query in open_benchmark("rankings", out).examples() if isinstance(query, Query)]
    assert [query.order for query in asked] == [(1, 2, 3, 4, 0), (0, 1, 2, 2, 2), (1, 1, 0, 1, 1), (1, 1, 1, 0, 1)]
    assert [query.targets for query in asked] == [{4}, {0}, {2}, {3}] and len({query.group for query in asked}) == 2

    model, run = f"random:{open_clip_config(tmp_path)}", tmp_path / "run"
    folders = ["--cache", str(tmp_path / "cache"), "--out", str(run)]
    assert main(["eval", "run", "--benchmark", f"rankings={out}", "--model", model, *folders]) == 0
    (path,) = run.glob("scores/rankings/*.parquet")
    rows = pq.read_table(path).to_pylist()
    assert [tuple(row["people"]) for row in rows] == [query.order for query in asked]
    for row in rows:
        assert [place for place in row["places"] if place < 1] and row["places"][row["top"][0]] == 0
    printed = " ".join(capsys.readouterr().out.split())
    taus = [correlations(*(np.array(row[name], np.float64) for name in ("places", "people")))[0] for row in rows]
    assert f"mean_kendall {np.mean(taus):.2f}" in printed and "mean_kendall" in (run / "report.html").read_text()
