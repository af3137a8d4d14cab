"""What people are asked for the human baseline, from pairs to the figures beside those of models."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.evaluation.report.made_scores import save
from tests.generators.decisions.tasks import answer as answer_to
from tests.generators.decisions.tasks import say
from tests.generators.human_baseline.asked_pairs import PAIRS, SAMPLE, build_pairs, recipe_of
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing
from twinset.contracts.recipe import Recipe
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.people import people
from twinset.evaluation.report.results import as_json, measured_run
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.pairs import HumanBaseline
from twinset.generators.decisions.question import TaskCandidate
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

FIGURES = ("text", "image", "group")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pairs(tmp_path_factory.mktemp("pairs"))


def asking(out: Path, answers: Path, seed: int = 0, sample: int = PAIRS, **more: Any) -> HumanBaseline:
    """A stage with a file of answers of its own, opened without the engine."""
    source = HumanBaseline(kind="human-baseline", pairs="mine", sample=sample, answers=str(answers), **more)
    return source.open(Context("human-baseline", seed=seed, earlier=lambda name: FinishedStage(Store(str(out)), name)))


def right_of(task: TaskCandidate) -> int:
    """The right answer: the number of the image or caption that is asked about."""
    return int(json.loads(task.identity)[1][-1])


def answer(recipe: Recipe, out: Path, wrong: set[tuple[int, str]]) -> list[str]:
    """One annotator answers everything, and is wrong in some queries, each by place of its pair and name of the query.

    Returns the keys of the pairs.
    """
    asked: Any = Job(recipe, Store(str(out))).worker("human-baseline").source
    pairs = list(dict.fromkeys(task.subject for task in asked.gathered.tasks))
    for task in asked.gathered.tasks:
        missed = (pairs.index(task.subject), json.loads(task.identity)[1]) in wrong
        say(out / FILE, [answer_to(task, "ann", str(right_of(task) ^ missed), stage="human-baseline")])
    return pairs


def test_four_questions_a_pair_each_with_its_right_answer(out: Path) -> None:
    generator = asking(out, out / "absent.sqlite", seed=1, sample=SAMPLE)
    tasks = generator.gathered.tasks
    assert len(tasks) == 4 * SAMPLE and set(Counter(task.group for task in tasks).values()) == {4}
    stored = {sample.key: sample for sample in read_samples(Store(str(out)), "mine")}
    for task in tasks:
        pair, (_, query) = stored[task.subject], json.loads(task.identity)
        shown = [hashlib.sha256(generator.picture(task, n)).hexdigest() for n in range(len(task.images))]
        images = {role: hashlib.sha256(content).hexdigest() for role, content in pair.images.items()}
        right = right_of(task)
        if query.startswith("image"):
            assert shown == [images[query]]
            assert task.texts[right] == pair.texts[f"caption{query[-1]}"] and len(set(task.texts)) == 2
        else:
            assert task.texts == (pair.texts[query],)
            assert shown[right] == images[f"image{query[-1]}"] and len(set(shown)) == 2
        assert task.kind_name == pair.json.change


def test_the_sample_depends_on_seed_and_keys_alone(out: Path) -> None:
    def sampled(seed: int, sample: int) -> set[str]:
        return {task.subject for task in asking(out, out / "absent.sqlite", seed, sample).gathered.tasks}

    assert len(sampled(1, 20)) == 20 and sampled(1, 20) < sampled(1, 30)
    assert len(sampled(1, 20) & sampled(2, 20)) < 15 and len(sampled(1, 10 * PAIRS)) == PAIRS


def test_annotators_who_overlap_have_figures_of_their_own_and_a_kappa(out: Path, tmp_path: Path) -> None:
    place = tmp_path / "answers.sqlite"
    tasks = asking(out, place, sample=10, overlap=1.0).gathered.tasks
    # The second is wrong in each fifth task: both say the same of 32, by chance of 20.
    answered = [(task, name, right_of(task)) for name in ("ann", "ben") for task in tasks]
    answered[len(tasks) :: 5] = [(task, "ben", 1 - right_of(task)) for task in tasks[::5]]
    answered += [(task, "cleo", right_of(task)) for task in tasks[::5]]  # whom the ties were left to
    say(place, [answer_to(task, name, str(value), stage="human-baseline") for task, name, value in answered])
    report = json.loads(asking(out, place, sample=10, overlap=1.0).report_files()["decisions.json"])
    measured = people(report, "made", "made", resamples=50)
    assert measured.as_json()["undecided"] == 0 and measured.pooled.all.figures["group"].value == 100
    counts = {name: (annotator["right"], annotator["answers"]) for name, annotator in measured.annotators.items()}
    assert counts == {"ann": (40, 40), "ben": (32, 40), "cleo": (8, 8)}
    assert measured.report["agreement"]["pairs"][0]["kappa"] == pytest.approx(0.6)


def test_people_are_asked_measured_and_shown_beside_a_model(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, stage = recipe_of(out.parent), str(out / "_stages/human-baseline")
    with pytest.raises(DecisionsMissing, match="human-baseline: 24 of 24 decisions are missing"):
        twinset.build(recipe, str(out), only=["human-baseline"])
    pairs = answer(recipe, out, {(0, "image1"), (1, "caption0"), (2, "image0"), (2, "caption1")})
    twinset.build(recipe, str(out), only=["human-baseline"])
    assert main(["eval", "human", stage, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["all"]
    assert [figures[name] for name in FIGURES] == pytest.approx([200 / 3, 200 / 3, 50.0])
    assert main(["eval", "human", stage]) == 0
    printed = capsys.readouterr().out
    assert "66.67" in printed and all(figure in printed for figure in ("Table 2", "90.40", "93.00", "86.80"))

    run, data = tmp_path / "run", BuiltDataset(out)
    examples = {example.key: example for example in data.examples()}
    right = {"s00": 0.9, "s01": 0.1, "s10": 0.1, "s11": 0.9}
    names = ("key", "subset", "category", "group")
    scores = [{**{name: getattr(example, name) for name in names}, **right} for example in examples.values()]
    save(run, "twinset", "clip", scores, MATCHING_SCORES, data_digest=data.digest(), left_out={})
    assert main(["eval", "human", stage, "--out", str(run)]) == 0
    table = pq.read_table(run / "scores/twinset/people.parquet")
    assert table["key"].to_pylist() == sorted(pairs)
    assert table["group"].to_pylist() == [examples[key].group for key in sorted(pairs)]
    results = as_json(measured_run(run, resamples=20))["benchmarks"]["twinset"]
    assert results["models"]["people"]["all"]["group"] == 50.0 and results["same_data"]
    assert results["models"]["people"]["left_out"] == {"people were not asked": PAIRS - SAMPLE}
    assert {"figure": "group", "n": SAMPLE, "difference": 50.0}.items() <= results["differences"][-1].items()

    save(tmp_path / "other", "twinset", "clip", scores, MATCHING_SCORES, data_digest="d" * 64)
    assert main(["eval", "human", stage, "--out", str(tmp_path / "other")]) == 2
    assert "scores of another state" in capsys.readouterr().err
