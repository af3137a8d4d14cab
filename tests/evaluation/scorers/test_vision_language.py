"""``vlm:FOLDER`` from the command's words to scores: all ways to ask, nothing computed twice, NaN and loops counted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.evaluation.benchmarks.made_layouts import eqben
from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.models.visual_questions.tiny_vision_language import pictures, save
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model, with_prompts
from twinset.evaluation.scorers.prompted import PromptedChooser, PromptedLikelihood, PromptedYes
from twinset.models.encoders.contract import Question, Running
from twinset.models.visual_questions import vision_language

FAST = Running(batch=4, threads=1)
CAPTIONS = ("a red wall", "a blue wall without windows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("vlm") / "llava", "llava")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vision_language, "LIKELIEST", 1000)


def test_every_way_to_ask_gives_scores_and_a_second_run_the_same_without_the_network(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision_language, "WRITTEN", 3)
    prompts = ["vqascore", "yes-no", "visualgptscore", "visualgptscore-mean", "visualgptscore-debiased", "options"]
    models = with_prompts([f"vlm:{folder}"], prompts)
    benchmark = SmallBenchmark(lambda: matchings(Shelf(), 4, 4))
    first = run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [one.model for one in first] == models and all(one.rows == 4 for one in first)
    kept = {one.path: one.path.read_bytes() for one in first}
    figures = [[*measure(one.path).all.figures] for one in first]
    assert all({"text", "image", "group"} <= {*names} for names in figures)
    told = [json.loads(pq.read_schema(one.path).metadata[b"twinset"]) for one in first]
    assert [one["prompt"] for one in told] == [f"{name} 1" for name in prompts]
    assert 0 <= told[4]["alpha_0"] <= 1 and told[0]["threshold"] == 0.5 and "threshold" not in told[2]
    for name in ("next_tokens", "continued", "write"):
        monkeypatch.setattr(vision_language.VisionLanguageModel, name, None)
    run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert {path: path.read_bytes() for path in kept} == kept


def test_sum_mean_and_prior_are_those_of_the_tokens(folder: Path) -> None:
    found = {}
    for name in ("visualgptscore", "visualgptscore-mean", "visualgptscore-debiased"):
        scorer = open_model(f"vlm/{name}:{folder}", FAST)
        assert isinstance(scorer, PromptedLikelihood)
        found[name] = scorer.score(pictures(1) * 2, CAPTIONS)
    tokens = [len(text.split()) for text in CAPTIONS]
    assert found["visualgptscore-mean"][:, 0] == pytest.approx(found["visualgptscore"][:, 0] / tokens)
    debiased = found["visualgptscore-debiased"]
    assert debiased.shape == (2, 3) and np.array_equal(debiased[:, :2], found["visualgptscore"])
    null = Image.new("RGB", (224, 224), (127, 127, 127))
    model = scorer.model.model  # type: ignore[attr-defined]
    alone = [float(one.sum()) for one in model.continued([null], scorer.prompt.text, CAPTIONS)]
    assert debiased[:, 2] == pytest.approx(alone)


def test_options_are_chosen_by_their_likelihood_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = open_model(f"vlm/options:{folder}", FAST)
    assert isinstance(scorer, PromptedChooser) and scorer.directions == ("text", "image")
    image = pictures(1)[0]
    asked = [Question("text", (image,), CAPTIONS), Question("image", (image, *pictures(1, seed=1)), CAPTIONS[:1])]
    found = scorer.choose(asked)
    model = scorer.model.model  # type: ignore[attr-defined]
    prompts = [scorer._shown(one) for one in asked]
    for said, shown in zip(found, prompts, strict=True):
        one, two = (float(tokens.sum()) for tokens in model.continued(shown.images, shown.text, ["1", "2"]))
        assert said == (int(two > one),)
    monkeypatch.setattr(model, "continued", None)
    assert scorer.choose(asked[::-1]) == found[::-1]


def test_one_that_loops_and_one_that_gives_nan_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_language, "WRITTEN", 4)
    scorer = open_model(f"vlm/choose:{folder}", FAST)
    assert isinstance(scorer, PromptedChooser)
    model: Any = scorer.model.model  # type: ignore[attr-defined]
    wall = model.tokenizer.get_vocab()["wall"]
    head_row = torch.arange(len(model.model.lm_head.weight))
    only = model.model.lm_head.register_forward_hook(lambda head, read, logits: logits + 1000 * (head_row == wall))
    question = Question("text", tuple(pictures(1)), CAPTIONS)
    assert scorer.choose([question]) == ["cut"]
    only.remove()
    for weight in model.model.parameters():
        weight.data.fill_(np.nan)
    assert scorer.choose([question._replace(captions=CAPTIONS[::-1])]) == ["not a number"]
    yes = PromptedYes("m", open_model(f"vlm:{folder}", FAST).prompt, scorer.model)  # type: ignore[attr-defined]
    scores = yes.score(pictures(1), CAPTIONS[:1])
    assert np.isnan(scores[0, 0]) and yes.reasons[int(scores[0, 1])] == "not a number"


def test_a_network_that_only_gives_nan_is_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        vision_language.VisionLanguageModel, "yes", lambda self, images, texts, words: [np.nan] * len(texts)
    )
    benchmark = SmallBenchmark(lambda: matchings(Shelf(), 3))
    with pytest.raises(WrongUse, match=r"answers nothing \(12 not a number\)"):
        run([benchmark], [f"vlm:{folder}"], tmp_path / "out", tmp_path / "cache", FAST)


def test_an_image_that_the_processor_does_not_take_is_refused_and_others_are_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save(tmp_path / "qwen", "qwen2_vl")  # it takes none that is over 200 times as wide as high
    wide, usual = Image.new("RGB", (900, 4)), pictures(1)[0]
    for prompt in ("vqascore", "visualgptscore", "visualgptscore-debiased"):
        scorer = open_model(f"vlm/{prompt}:{folder}", FAST)
        assert isinstance(scorer, PromptedYes | PromptedLikelihood)
        scores = scorer.score([wide, usual], ["a red wall"] * 2)
        assert (
            np.isnan(scores[0, 0]) and scorer.reasons[int(scores[0, 1])] == "refused" and not np.isnan(scores[1]).any()
        )
    for prompt in ("choose", "options"):
        chooser = open_model(f"vlm/{prompt}:{folder}", FAST)
        assert isinstance(chooser, PromptedChooser)
        assert chooser.choose([Question("text", (wide,), CAPTIONS)]) == ["refused"]
    assert "images of 900 x 4" in caplog.text


def test_the_command_asks_a_part_by_each_prompt_and_the_report_shows_how_far_figures_move(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    eqben(tmp_path / "data")
    own = tmp_path / "mine.yaml"
    own.write_text("mine: {version: 2, asks: 'yes', source: me, text: 'Does this show {caption} ?'}")
    command = ["eval", "run", "--benchmark", f"eqben={tmp_path / 'data'}", "--model", f"vlm:{folder}", "--limit", "1"]
    command += ["--prompt", "vqascore", "--prompt", str(own), "--seed", "3", "--out", str(tmp_path / "out"), "--json"]
    assert main([*command, "--cache", str(tmp_path / "cache")]) == 0
    found = json.loads(capsys.readouterr().out)["scores"]
    assert [one["model"] for one in found] == [f"vlm/vqascore:{folder}", f"vlm/{own}:{folder}"]
    rows = [pq.read_table(one["path"]).select(["key", "subset"]).to_pylist() for one in found]
    assert rows[0] == rows[1] and len(rows[0]) == len({row["subset"] for row in rows[0]}) > 1
    told = json.loads(pq.read_schema(found[1]["path"]).metadata[b"twinset"])
    assert told["prompt"] == "mine 2" and told["title"].endswith(", 1 of each subset (seed 3)")
    moves = (tmp_path / "out" / "tables" / "eqben-prompts.csv").read_text()
    assert f"vlm:{folder},text,2," in moves and "mine 2" in moves
