"""Benchmarks with figures, questions or answers of their own, asked of models."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from extras.tests.benchmarks.made_layouts import circo, mmvp, naturalbench, vsr, whatsup
from tests.evaluation.questions.test_own_table import put_text
from tests.evaluation.scorers.conftest import environment
from tests.evaluation.scorers.opened import FAST
from tests.evaluation.scorers.shown_images import likely, looks
from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.models.language_models.chat_server import Body, Reply, serving
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import run
from twinset.evaluation.submissions import write_submissions
from twinset.models.encoders.contract import NotApplicable

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
        return likely(A=0.1, Yes=0.1) if "letter" not in text else likely(**{"A": 0.6, "(b": 0.2, "yes": 0.2})

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


@pytest.mark.parametrize("kind", ["openai-chooser", "openai-chooser/eqben"])
def test_models_that_read_captions_are_not_asked_questions(
    environment: Callable[..., None], tmp_path: Path, kind: str
) -> None:
    with serving(looks) as server:
        environment(server.url)
        with pytest.raises(NotApplicable, match=r"asks 'What red one .* openai-yesno:MODEL or vlm:FOLDER"):
            run([own_questions(tmp_path, "naturalbench")], [f"{kind}:m"], tmp_path, tmp_path)
        assert not server.bodies


def test_a_run_gives_both_figures(tmp_path: Path) -> None:
    whatsup(tmp_path / "data")
    benchmark = open_benchmark("whatsup", tmp_path / "data")
    model = f"random:{open_clip_config(tmp_path)}"
    (written,) = run([benchmark], [model], tmp_path / "out", tmp_path / "cache", FAST)
    figures = measure(written.path).as_json()["all"]
    assert figures["pair_accuracy"] in (0, 50, 100) and figures["set_accuracy"] in (0, 100)
    before = written.path.read_bytes()
    run([benchmark], [model], tmp_path / "out", tmp_path / "cache", FAST)
    assert written.path.read_bytes() == before


def test_outcomes_of_statements_need_no_margin(tmp_path: Path) -> None:
    vsr(tmp_path / "vsr")
    assert put_text(tmp_path, "vsr", "key,correct\nrandom/0,1\nrandom/1,0\n")["figures"]["accuracy"] == 50
    with pytest.raises(WrongUse, match="vsr needs correct"):
        put_text(tmp_path, "vsr", "key,s00,s01\nrandom/0,1,0\n")


def test_a_benchmarks_own_metrics_are_measured(tmp_path: Path) -> None:
    naturalbench(tmp_path / "naturalbench")
    found = put_text(tmp_path, "naturalbench", "s00,s01,s10,s11\n" + "1,0,0,1\n" * 2, threshold=0.5)
    assert found["figures"]["g_acc"] == 100


def test_circo_names_images_by_their_numbers(tmp_path: Path) -> None:
    circo(tmp_path / "circo", split="test")
    model = f"image+text:random:{open_clip_config(tmp_path / 'model')}"
    opened = open_benchmark("circo-test", tmp_path / "circo")
    (path,) = write_submissions(opened, model, tmp_path / "out", tmp_path / "cache")
    found = json.loads(path.read_text())
    assert [*found] == ["0", "1", "2"] and all(sorted(names) == [0, 1, 2, 3, 4, 5] for names in found.values())
