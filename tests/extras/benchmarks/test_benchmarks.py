"""Benchmarks with options, classes, figures, questions or answers of their own, asked of models."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from open_clip.zero_shot_metadata import IMAGENET_CLASSNAMES, OPENAI_IMAGENET_TEMPLATES
from PIL.Image import Image, fromarray

from tests.evaluation.benchmarks.made_layouts import pictures, pixels, put, queries
from tests.evaluation.questions.test_answered import put_text
from tests.evaluation.scorers.opened import FAST
from tests.evaluation.scorers.test_prompted import environment
from tests.extras.benchmarks.made_layouts import cola_single, mmvp, naturalbench, vsr, whatsup
from tests.models.language_models.chat_server import Body, Reply, completion, serving
from tests.tiny_encoders import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Ensemble, Picture, Query
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.run import run, similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Floats, Matcher, NotApplicable, Running


@pytest.mark.parametrize(("name", "right"), [("aro-order", {0}), ("sugarcrepe++", {0, 1}), ("spec", {0})])
def test_of_several_options_all_that_say_the_same_are_targets(tmp_path: Path, name: str, right: set[int]) -> None:
    """Of two records, the second offers the right answer twice."""
    pairs, images = [("a dog", "a cat"), ("a dog", "a dog")], ["0.jpg", "1.jpg"]
    fields = {
        "aro-order": ("coco_order.json", [{"caption_options": [*pair, "x"]} for pair in pairs]),
        "sugarcrepe++": ("swap_obj.json", [{"caption": a, "caption2": "b", "negative_caption": c} for a, c in pairs]),
        "spec": ("count/image2text.json", [{"keys": [*pair, "x"], "label": 0} for pair in pairs]),
    }
    file, records = fields[name]
    key = {"aro-order": "image", "sugarcrepe++": "filename", "spec": "query"}[name]
    put(tmp_path / file, [{key: image, **record} for image, record in zip(images, records, strict=True)])
    pictures((tmp_path / file).parent, images)
    plain, twice = queries(open_benchmark(name, tmp_path))
    assert (plain.targets, twice.targets) == (right, right | {2 if name == "sugarcrepe++" else 1})


def test_classes_with_one_name_are_both_right(tmp_path: Path) -> None:
    """... as sunglasses and missiles are, two of ImageNet's classes each."""
    classes(tmp_path, ["n1", "n2", "zebra"])
    put(tmp_path / "classnames.txt", "n1 sunglasses\nn2 sunglasses\nzebra zebra\n")
    assert [one.targets for one in queries(open_benchmark("imagenet", tmp_path))] == [{0, 1}, {0, 1}, {2}]


def classes(root: Path, names: list[str]) -> None:
    pictures(root / "val", [f"{name}/{name}.JPEG" for name in names])


def test_scores_are_those_of_open_clips_zero_shot_classifier(tmp_path: Path) -> None:
    classes(tmp_path, ["a_cup", "zebra"])
    found = queries(open_benchmark("imagenet", tmp_path))
    model, running = f"random:{open_clip_config(tmp_path / 'model')}", Running()
    ours = similarities_of(open_model(model, running), tmp_path / "cache", running)
    assert isinstance(ours, ByFeatures) and ours.prepare(found) == {}
    torch.manual_seed(0)
    scorer = ours.encoder
    names = ["a cup", "zebra"]
    with torch.inference_mode():
        each = [
            np.stack(list(scorer.text_features([template(name) for template in OPENAI_IMAGENET_TEMPLATES])))
            for name in names
        ]
    normed = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in each]
    means = np.stack([one.mean(0) / np.linalg.norm(one.mean(0)) for one in normed])
    image = scorer.image_features([scorer.prepare(fromarray(pixels(found[0].image)))])[0]  # type: ignore[arg-type]
    assert ours.gallery(found[0]) == pytest.approx(means @ (image / np.linalg.norm(image)), abs=1e-5)


def test_some_of_imagenets_classes_need_their_names(tmp_path: Path) -> None:
    classes(tmp_path, ["n01440764", "n01443537"])
    with pytest.raises(WrongUse, match=r"2 of its 2 folders .* write classnames\.txt beside them"):
        queries(open_benchmark("imagenet", tmp_path))
    put(tmp_path / "classnames.txt", "n01440764 tench\nn01443537 gold fish\n")
    assert "a photo of a gold fish." in queries(open_benchmark("imagenet", tmp_path))[0].gallery[1].texts  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["{}", "{:04}", "n{:08}"])
def test_a_thousand_numbers_are_imagenets_classes_in_open_clips_templates(tmp_path: Path, form: str) -> None:
    classes(tmp_path, [form.format(number) for number in range(1000)])
    by_folder = {one.category: one for one in queries(open_benchmark("imagenet", tmp_path))}
    for number in (0, 1, 2, 10, 100, 999):
        one = by_folder[form.format(number)]
        (target,) = one.targets
        words = one.gallery[target]
        assert isinstance(words, Ensemble) and words == f"a bad photo of a {IMAGENET_CLASSNAMES[number]}."
        assert len(words.texts) == 80 and f"a photo of a {IMAGENET_CLASSNAMES[number]}." in words.texts


FILE = "data/COLA_singleobjects_benchmark_GQA.json"


def asked(folder: Path) -> list[Query]:
    items = open_benchmark("cola-single", folder, ["gqa"]).examples()
    return [one for one in items if isinstance(one, Query)]


def test_a_class_is_ranked_among_the_images_of_its_hard_list(tmp_path: Path) -> None:
    cola_single(tmp_path)
    found = asked(tmp_path)
    shown = [[Path(one.where).name for one in query.gallery if isinstance(one, Picture)] for query in found]
    assert shown == [["0.jpg", "1.jpg", "2.jpg", "3.jpg"], ["0.jpg", "1.jpg", "2.jpg"]]
    assert [(one.text, one.targets) for one in found] == [("red cup", {0}), ("square plate", {1, 2})]
    (tmp_path / "vg" / "1.jpg").unlink()
    assert [(len(one.gallery), one.targets) for one in asked(tmp_path)] == [(3, {0}), (2, {1})]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("labels", None, "not a list of labels"),
        ("labels", [" ", "b", "c"], "a label is not a text"),
        ("data", ["1.jpg"], "image 0: not an image with its labels"),
        ("data", [["1.jpg", {}, [1, 0], [1, 0]]], "image 0: not 3 labels of 0 or 1"),
        ("data", [["1.jpg", {}, [1, 0, 0], [1, 0, [1]]]], "image 0: not 3 labels of 0 or 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, key: str, value: object, words: str) -> None:
    cola_single(tmp_path)
    put(tmp_path / FILE, {**json.loads((tmp_path / FILE).read_text()), key: value})
    with pytest.raises(WrongUse, match=words):
        asked(tmp_path)


__all__ = ["environment"]


def own_questions(folder: Path, name: str) -> Reader:
    {"naturalbench": naturalbench, "mmvp": mmvp}[name](folder / name)
    return open_benchmark(name, folder / name)


OWN = {
    "naturalbench": {
        "Is the cup red?Please answer Yes or No.",
        "Is it 1?Please answer Yes or No.",
        *(
            f"{asked}\nOption: A:Cap; B:Helmet;Please output the letter corresponding to the correct option."
            for asked in ("What red one is worn?", "What is there?")
        ),
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
        (found,) = run([benchmark], [f"{kind}:m"], tmp_path, tmp_path)
    assert texts == OWN[name]
    told = json.loads(pq.read_schema(found.path).metadata[b"twinset"])
    assert told["prompt"] == f"{name} 1" and told["model"] == f"{kind}:m"
    rows = pq.read_table(found.path).select(["s00", "s01", "s10", "s11"]).to_pylist()
    first, second = ([[row["s00"], row["s01"]], [row["s10"], row["s11"]]] for row in rows)
    if name == "naturalbench":  # A is right for the own image of both questions
        assert first == [[0.75, 0.75], [0.75, 0.75]] and second == [[1.0, 1.0], [1.0, 1.0]]
    else:  # a for the first image of the first pair, and for the second image of the second pair
        assert first == [[0.75, 0.25], [0.75, 0.25]] and second == [[0.25, 0.75], [0.25, 0.75]]


def test_models_that_read_captions_are_not_asked_questions(environment: Callable[..., None], tmp_path: Path) -> None:
    environment("http://127.0.0.1:1/v1")
    with pytest.raises(NotApplicable, match="asks questions of its own; name openai-yesno:MODEL or vlm"):
        run([own_questions(tmp_path, "naturalbench")], ["openai-chooser:m"], tmp_path, tmp_path)


def test_a_run_gives_both_figures(tmp_path: Path) -> None:
    whatsup(tmp_path / "data")
    benchmark = open_benchmark("whatsup", tmp_path / "data")
    model = f"random:{open_clip_config(tmp_path)}"
    (written,) = run([benchmark], [model], tmp_path / "out", tmp_path / "cache", FAST)
    figures = measure(written.path).as_json()["all"]
    assert figures["pair_accuracy"] in (0, 50, 100) and figures["set_accuracy"] in (0, 100)


def test_outcomes_of_statements_need_no_margin(tmp_path: Path) -> None:
    vsr(tmp_path / "vsr")
    assert put_text(tmp_path, "vsr", "key,correct\nrandom/0,1\nrandom/1,0\n")["figures"]["accuracy"] == 50
    with pytest.raises(WrongUse, match="vsr needs correct"):
        put_text(tmp_path, "vsr", "key,s00,s01\nrandom/0,1,0\n")


def test_a_benchmarks_own_metrics_are_measured(tmp_path: Path) -> None:
    naturalbench(tmp_path / "naturalbench")
    examples = open_benchmark("naturalbench", tmp_path / "naturalbench").examples()
    lines = ["key,s00,s01,s10,s11", *(f"{example.key},1,0,0,1" for example in examples)]  # type: ignore[union-attr]
    found = put_text(tmp_path, "naturalbench", "\n".join(lines), threshold=0.5)
    assert found["figures"]["g_acc"] == 100


class SaysYes(Matcher):
    """P(yes) is 0.9 whatever is shown."""

    name, threshold = "says-yes", 0.5

    def digest(self) -> str:
        return "says-yes"

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        return np.full(len(texts), 0.9, np.float32)


def test_who_says_yes_to_all_is_right_where_the_statement_is_true(tmp_path: Path) -> None:
    vsr(tmp_path)
    benchmark = open_benchmark("vsr", tmp_path)
    answers = ByPairs(SaysYes(), FeatureStore(tmp_path / "cache", "says-yes"), 2)
    path = tmp_path / "out" / "scores" / "vsr" / "says-yes.parquet"
    path.parent.mkdir(parents=True)
    about = {"benchmark": "vsr", "title": "VSR", "model": "says-yes", "model_digest": "0", "threshold": 0.5}
    assert write_scores(benchmark, answers, path, about) == 2
    rows = pq.read_table(path).select(["key", "margin", "correct"]).to_pylist()
    assert [row["correct"] for row in rows] == [False, True]
    assert [row["margin"] for row in rows] == pytest.approx([-0.4, 0.4])
    assert measure(path, resamples=0).all.figures["accuracy"].value == 50
    page = write_report(tmp_path / "out", {"vsr": benchmark})[0].read_text()
    assert "accuracy" in page and "on the wrong side of the threshold" in page and "(not true)" in page


def test_a_model_without_a_threshold_is_told_so(tmp_path: Path) -> None:
    vsr(tmp_path)
    model = "random:ViT-S-32-alt"  # the smallest that open_clip knows by name
    with pytest.raises(NotApplicable, match=r"no score above which a text is true of an image.*blip-itm:FOLDER"):
        run([open_benchmark("vsr", tmp_path)], [model], tmp_path / "out", tmp_path / "cache")
