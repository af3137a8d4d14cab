"""``vlm:FOLDER`` from the command's words to scores: all ways to ask, nothing computed twice, NaN and loops counted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.evaluation.scorers.opened import FAST
from tests.models.visual_questions.tiny_vision_language import pictures, save
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model, with_prompts
from twinset.evaluation.scorers.prompted import PromptedChooser, PromptedYes
from twinset.models.encoders.contract import Question
from twinset.models.visual_questions import vision_language

CAPTIONS = ("a red wall", "a blue wall without windows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("vlm") / "llava", "llava")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vision_language, "LIKELY", 0)


def chooser(text: str) -> Any:
    found = open_model(text, FAST)
    assert isinstance(found, PromptedChooser)
    return found


def test_every_way_to_ask_gives_scores_and_a_second_run_the_same_without_the_network(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = {"vqascore": 1, "yes-no": 1}
    models = with_prompts([f"vlm:{folder}"], [*prompts])
    benchmark = SmallBenchmark(lambda: matchings(Shelf(), 4, 4))
    first = run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [one.model for one in first] == models and all(one.rows == 4 for one in first)
    kept = {one.path: one.path.read_bytes() for one in first}
    assert all({"text", "image", "group"} <= measure(one.path).all.figures.keys() for one in first)
    told = [json.loads(pq.read_schema(one.path).metadata[b"twinset"]) for one in first]
    assert [one["prompt"] for one in told] == [f"{name} {version}" for name, version in prompts.items()]
    monkeypatch.setattr(vision_language.VisionLanguageModel, "ask", None)
    run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert {path: path.read_bytes() for path in kept} == kept


def test_one_that_loops_and_one_that_gives_nan_say_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinset.evaluation.scorers.asking.WRITTEN", 4)
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
    assert scorer.choose([question, question._replace(captions=CAPTIONS[::-1])]) == ["cut", "not a number"]
    yes = PromptedYes("m", open_model(f"vlm:{folder}", FAST).prompt, scorer.model)  # type: ignore[attr-defined]
    scores = yes.score(pictures(1), CAPTIONS[:1])
    assert np.isnan(scores[0, 0]) and yes.reasons[int(scores[0, 1])] == "not a number"
    monkeypatch.setattr(vision_language, "open_vision_language", lambda name, running: model)
    with pytest.raises(WrongUse, match=r"answers nothing \(12 not a number\)"):
        run([SmallBenchmark(lambda: matchings(Shelf(), 3))], [f"vlm:{folder}"], tmp_path / "out", tmp_path / "c", FAST)
