"""Benchmarks with options, classes, figures, questions or answers of their own, asked of models."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from open_clip.zero_shot_metadata import IMAGENET_CLASSNAMES, OPENAI_IMAGENET_TEMPLATES
from PIL.Image import fromarray

from tests.evaluation.benchmarks.made_layouts import picture, pictures, pixels, put, queries
from tests.evaluation.questions.test_answered import put_text
from tests.evaluation.scorers.test_prompted import environment
from tests.extras.benchmarks.made_layouts import cola_single, mmvp, naturalbench, vsr
from tests.models.language_models.chat_server import Body, Reply, completion, serving
from tests.tiny_encoders import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Ensemble, Picture, Query
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.run import run, similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import NotApplicable, Running, unit

__all__ = ["environment"]


@pytest.mark.parametrize(("name", "right"), [("aro-order", {0}), ("sugarcrepe++", {0, 1}), ("spec", {0})])
def test_of_several_options_all_that_say_the_same_are_targets(tmp_path: Path, name: str, right: set[int]) -> None:
    """Of two records, the second offers the right answer twice."""
    pairs = [("0.jpg", "a dog", "a cat"), ("1.jpg", "a dog", "a dog")]
    file, records = {
        "aro-order": ("coco_order.json", [{"image": n, "caption_options": [a, b, "x"]} for n, a, b in pairs]),
        "sugarcrepe++": (
            "swap_obj.json",
            [{"filename": n, "caption": a, "caption2": "b", "negative_caption": b} for n, a, b in pairs],
        ),
        "spec": ("count/image2text.json", [{"query": n, "keys": [a, b, "x"], "label": 0} for n, a, b in pairs]),
    }[name]
    put(tmp_path / file, records)
    pictures((tmp_path / file).parent, ["0.jpg", "1.jpg"])
    plain, twice = queries(open_benchmark(name, tmp_path))
    assert (plain.targets, twice.targets) == (right, right | {2 if name == "sugarcrepe++" else 1})


def test_classes_with_one_name_are_both_right(tmp_path: Path) -> None:
    """... as sunglasses and missiles are, two of ImageNet's classes each."""
    classes(tmp_path, ["n1", "n2", "zebra"])
    put(tmp_path / "classnames.txt", "n1 sunglasses\nn2 sunglasses\nzebra zebra\n")
    assert [query.targets for query in queries(open_benchmark("imagenet", tmp_path))] == [{0, 1}, {0, 1}, {2}]


def classes(root: Path, names: list[str]) -> None:
    shown = picture(0)
    for name in names:
        put(root / "val" / name / f"{name}.JPEG", shown)


def test_scores_are_those_of_open_clips_zero_shot_classifier(tmp_path: Path) -> None:
    classes(tmp_path, ["a_cup", "zebra"])
    asked = queries(open_benchmark("imagenet", tmp_path))
    model, running = f"random:{open_clip_config(tmp_path / 'model')}", Running()
    ours = similarities_of(open_model(model, running), tmp_path / "cache", running)
    assert isinstance(ours, ByFeatures) and ours.prepare(asked) == {}
    scorer = ours.encoder
    names = ["a cup", "zebra"]
    each = [scorer.text_features([template(name) for template in OPENAI_IMAGENET_TEMPLATES]) for name in names]
    means = unit(np.stack([unit(features).mean(0) for features in each]))
    image = scorer.image_features([scorer.prepare(fromarray(pixels(asked[0].image)))])  # type: ignore[arg-type]
    assert ours.gallery(asked[0]) == pytest.approx(means @ unit(image)[0], abs=1e-5)


def test_some_of_imagenets_classes_need_their_names(tmp_path: Path) -> None:
    classes(tmp_path, ["n01440764", "n01443537"])
    with pytest.raises(WrongUse, match=r"2 of its 2 folders .* write classnames\.txt beside them"):
        queries(open_benchmark("imagenet", tmp_path))
    put(tmp_path / "classnames.txt", "n01440764 tench\nn01443537 gold fish\n")
    assert "a photo of a gold fish." in queries(open_benchmark("imagenet", tmp_path))[0].gallery[1].texts  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["{}", "n{:08}"])
def test_a_thousand_numbers_are_imagenets_classes_in_open_clips_templates(tmp_path: Path, form: str) -> None:
    classes(tmp_path, [form.format(number) for number in range(1000)])
    by_folder = {query.category: query for query in queries(open_benchmark("imagenet", tmp_path))}
    for number in (0, 1, 2, 10, 100, 999):
        query = by_folder[form.format(number)]
        (target,) = query.targets
        words = query.gallery[target]
        assert isinstance(words, Ensemble) and words == f"a bad photo of a {IMAGENET_CLASSNAMES[number]}."
        assert len(words.texts) == 80 and f"a photo of a {IMAGENET_CLASSNAMES[number]}." in words.texts


def cola(folder: Path) -> list[Query]:
    return queries(open_benchmark("cola-single", folder, ["gqa"]))


def test_a_class_is_ranked_among_the_images_of_its_hard_list(tmp_path: Path) -> None:
    cola_single(tmp_path)
    asked = cola(tmp_path)
    shown = [[Path(entry.where).name for entry in query.gallery if isinstance(entry, Picture)] for query in asked]
    assert shown == [["0.jpg", "1.jpg", "2.jpg", "3.jpg"], ["0.jpg", "1.jpg", "2.jpg"]]
    assert [(query.text, query.targets) for query in asked] == [("red cup", {0}), ("square plate", {1, 2})]
    (tmp_path / "vg" / "1.jpg").unlink()
    assert [(len(query.gallery), query.targets) for query in cola(tmp_path)] == [(3, {0}), (2, {1})]


def test_labels_of_another_form_are_refused(tmp_path: Path) -> None:
    rows = [["1.jpg", {}, [1, 0, 0], [1, 0, [1]]]]
    put(tmp_path / "data/COLA_singleobjects_benchmark_GQA.json", {"labels": ["a", "b", "c"], "data": rows})
    with pytest.raises(WrongUse, match="image 0: not 3 labels"):
        cola(tmp_path)


def own_questions(folder: Path, name: str) -> Reader:
    {"naturalbench": naturalbench, "mmvp": mmvp}[name](folder)
    return open_benchmark(name, folder)


LETTER = "\nOption: A:Cap; B:Helmet;Please output the letter corresponding to the correct option."
OWN = {
    "naturalbench": {
        "Is the cup red?Please answer Yes or No.",
        "Is it 1?Please answer Yes or No.",
        f"What red one is worn?{LETTER}",
        f"What is there?{LETTER}",
    },
    "mmvp": {
        f"Is the cup red, or not? {n} (a) red (b) Other "
        "Answer with the option's letter from the given choices directly."
        for n in (0, 1)
    },
}


@pytest.mark.parametrize("kind", ["openai-yesno", "openai-vqascore"])
@pytest.mark.parametrize("name", OWN)
def test_a_benchmarks_own_question_is_asked_and_the_likelier_answer_counts(
    environment: Callable[..., None], tmp_path: Path, kind: str, name: str
) -> None:
    benchmark, texts = own_questions(tmp_path, name), set[str]()

    def reply(body: Body, _: int) -> Reply:
        texts.add(text := body["messages"][0]["content"][-1]["text"])
        chances = {"A": 0.6, "(b": 0.2, "yes": 0.2} if "letter" in text else {"A": 0.1, "Yes": 0.9}
        return completion("Yes", likely=chances)

    with serving(reply) as server:
        environment(server.url)
        (scored,) = run([benchmark], [f"{kind}:m"], tmp_path, tmp_path)
    assert texts == OWN[name]
    about = json.loads(pq.read_schema(scored.path).metadata[b"twinset"])
    assert about["prompt"] == f"{name} 1" and about["model"] == f"{kind}:m"
    first, second = ([row[score] for score in SCORES] for row in pq.read_table(scored.path).to_pylist())
    if name == "naturalbench":  # A is right for the own image of both questions
        assert first == [0.75] * 4 and second == [1.0] * 4
    else:  # a for the first image of the first pair, and for the second image of the second pair
        assert first == [0.75, 0.25, 0.75, 0.25] and second == [0.25, 0.75, 0.25, 0.75]


def test_models_that_read_captions_are_not_asked_questions(environment: Callable[..., None], tmp_path: Path) -> None:
    environment("http://127.0.0.1:1/v1")
    with pytest.raises(NotApplicable, match="asks questions of its own; name openai-yesno:MODEL or vlm"):
        run([own_questions(tmp_path, "naturalbench")], ["openai-chooser:m"], tmp_path, tmp_path)


def test_outcomes_of_statements_need_no_margin(tmp_path: Path) -> None:
    vsr(tmp_path / "vsr")
    assert put_text(tmp_path, "vsr", "key,correct\nrandom/0,1\nrandom/1,0\n")["figures"]["accuracy"] == 50
    with pytest.raises(WrongUse, match="vsr needs correct"):
        put_text(tmp_path, "vsr", "key,s00,s01\nrandom/0,1,0\n")


def test_a_benchmarks_own_metrics_are_measured(tmp_path: Path) -> None:
    naturalbench(tmp_path / "naturalbench")
    text = "key,s00,s01,s10,s11\ntest/0,1,0,0,1\ntest/1,1,0,0,1\n"
    assert put_text(tmp_path, "naturalbench", text, threshold=0.5)["figures"]["g_acc"] == 100


def test_who_says_yes_to_all_is_right_where_the_statement_is_true(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    vsr(tmp_path)
    benchmark = open_benchmark("vsr", tmp_path)
    with serving(lambda *_: completion("Yes", likely={"Yes": 0.9, "No": 0.1})) as server:
        environment(server.url)
        (scored,) = run([benchmark], ["openai-yesno:m"], tmp_path / "out", tmp_path)
    rows = pq.read_table(scored.path).to_pylist()
    assert [row["correct"] for row in rows] == [False, True]
    assert [row["margin"] for row in rows] == pytest.approx([-0.4, 0.4])
    assert measure(scored.path, resamples=0).all.figures["accuracy"].value == 50
    page = write_report(tmp_path / "out", {"vsr": benchmark}, resamples=0)[0].read_text()
    assert "accuracy" in page and "on the wrong side of the threshold" in page and "(not true)" in page


def test_a_model_without_a_threshold_is_refused(tmp_path: Path) -> None:
    vsr(tmp_path)
    model = f"random:{open_clip_config(tmp_path / 'model')}"
    with pytest.raises(NotApplicable, match=r"no score above which a text is true of an image.*blip-itm:FOLDER"):
        run([open_benchmark("vsr", tmp_path)], [model], tmp_path / "out", tmp_path / "cache")
