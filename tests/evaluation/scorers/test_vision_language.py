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
from tests.evaluation.scorers.opened import FAST
from tests.models.visual_questions.tiny_vision_language import pictures, save
from tests.transformers_server import serving
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import run
from twinset.evaluation.scorers.asking import ADDRESS, SETTINGS
from twinset.evaluation.scorers.kinds import open_model, with_prompts
from twinset.evaluation.scorers.prompted import PromptedChooser, PromptedYes
from twinset.models.encoders.contract import Question
from twinset.models.language_models.answers import Answers
from twinset.models.visual_questions import vision_language

CAPTIONS = ("a red wall", "a blue wall without windows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("vlm") / "llava", "llava")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vision_language, "LIKELIEST", 1000)


def chooser(text: str) -> Any:
    found = open_model(text, FAST)
    assert isinstance(found, PromptedChooser)
    return found


def test_every_way_to_ask_gives_scores_and_a_second_run_the_same_without_the_network(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = {"vqascore": 1, "yes-no": 1, "choose": 1}
    models = with_prompts([f"vlm:{folder}"], [*prompts])
    benchmark = SmallBenchmark(lambda: matchings(Shelf(), 4, 4))
    first = run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [one.model for one in first] == models and all(one.rows == 4 for one in first)
    kept = {one.path: one.path.read_bytes() for one in first}
    assert all({"text", "image", "group"} <= measure(one.path).all.figures.keys() for one in first)
    told = [json.loads(pq.read_schema(one.path).metadata[b"twinset"]) for one in first]
    assert [one["prompt"] for one in told] == [f"{name} {version}" for name, version in prompts.items()]
    for name in ("next_tokens", "yes", "write"):
        monkeypatch.setattr(vision_language.VisionLanguageModel, name, None)
    run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert {path: path.read_bytes() for path in kept} == kept


def test_one_that_loops_and_one_that_gives_nan_say_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision_language, "WRITTEN", 4)
    scorer = chooser(f"vlm/choose:{folder}")
    model: Any = scorer.model.model
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
    monkeypatch.setattr("twinset.evaluation.scorers.prompted.open_vision_language", lambda name, running: model)
    with pytest.raises(WrongUse, match=r"answers nothing \(12 not a number\)"):
        run([SmallBenchmark(lambda: matchings(Shelf(), 3))], [f"vlm:{folder}"], tmp_path / "out", tmp_path / "c", FAST)


def test_an_image_that_the_processor_does_not_take_is_refused_and_others_are_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save(tmp_path / "qwen", "qwen2_vl")  # it takes none that is over 200 times as wide as high
    wide, usual = Image.new("RGB", (900, 4)), pictures(1)[0]
    scorer = open_model(f"vlm:{folder}", FAST)
    assert isinstance(scorer, PromptedYes)
    scores = scorer.score([wide, usual], ["a red wall"] * 2)
    assert np.isnan(scores[0, 0]) and scorer.reasons[int(scores[0, 1])] == "refused" and not np.isnan(scores[1]).any()
    assert chooser(f"vlm/choose:{folder}").choose([Question("text", (wide,), CAPTIONS)]) == ["refused"]
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
    told = json.loads(pq.read_schema(found[1]["path"]).metadata[b"twinset"])
    assert told["prompt"] == "mine 2" and told["title"].endswith(", 1 of each subset (seed 3)")
    moves = (tmp_path / "out" / "tables" / "eqben-prompts.csv").read_text()
    assert f"vlm:{folder},text,2," in moves and "mine 2" in moves


@pytest.mark.slow
def test_a_real_server_reads_images_and_is_asked_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTINGS, json.dumps({"answers": str(tmp_path), "max_tokens": 1, "concurrency": 2}))
    questions, found = [Question("text", (one,), CAPTIONS) for one in pictures(2)], []
    with serving(tmp_path / "log") as address:
        monkeypatch.setenv(ADDRESS, address)
        for _ in range(2):
            scorer = open_model(f"openai-chooser:{folder}", FAST)
            assert isinstance(scorer, PromptedChooser)
            found.append(scorer.choose(questions))
    assert found[0] == found[1] and len(found[0]) == 2
    assert Answers(tmp_path).spent(str(folder)).answers == 2
