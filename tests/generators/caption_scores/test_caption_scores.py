"""The stage, and its scorers: on published layouts against transcriptions, damaged, and of another package."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from transformers import AutoTokenizer, T5EncoderModel
from transformers import RobertaForSequenceClassification as Roberta

from tests.generators.caption_scores.tiny_scorers import BIAS, MODELS, TEMPERATURE, TEXTS, scored
from tests.generators.selection.scored_stage import row, stage_of
from twinset import check_scorer
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.references import Reference
from twinset.generators.caption_scores.scorers.scorer import Scorer, ScorerSettings
from twinset.generators.caption_scores.source import CaptionScores
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage


@pytest.fixture(scope="session")
def scorer_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("tiny-scorers")
    return {kind: save(root / kind) for kind, save in MODELS.items()}


def negatives(folder: Path, pairs: Sequence[tuple[str, str]]) -> FinishedStage:
    """A finished stage with a row for each caption and negative."""
    texts = [{"caption": caption, "negative_caption": negative} for caption, negative in pairs]
    return stage_of([row(number, "add_obj", **own) for number, own in enumerate(texts)], folder)


PAIRS = (
    ("A man riding a horse.", "A man riding a bike."),
    ("A dog.", "A dog and a cat."),
    ("A man riding a horse.", "A woman riding a horse."),
    ("A dog.", "A dog on a hat."),
)


def source(folders: dict[str, Path], *kinds: str) -> CaptionScores:
    scorers = [{"kind": kind, "model": str(folders[kind])} for kind in kinds]
    return CaptionScores.model_validate({"kind": "caption-scores", "negatives": "negatives", "scorers": scorers})


def opened(chosen: CaptionScores, table: FinishedStage) -> CaptionScores:
    return chosen.open(Context("scores", earlier=lambda _: table))


def made(generator: CaptionScores) -> list[TableRows | Rejected]:
    return list(generator.make(list(generator.plan())))


def test_each_text_is_scored_once_and_a_number_that_is_none_rejects_its_row_alone(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    generator = opened(source(scorer_folders, "cola"), negatives(tmp_path, (*PAIRS, ("A cat.", "A bus."))))
    numbers, asked = {"A woman riding a horse.": np.nan, "A dog.": -np.inf}, Counter[str]()

    def scorer(texts: Sequence[str], micro_batch: int) -> NDArray[np.float64]:
        asked.update(texts)
        return np.array([numbers.get(text, 0.5) for text in texts])

    generator.__dict__["opened_scorers"] = [(generator.scorers[0], scorer)]
    details = [getattr(result, "detail", "") for result in made(generator)]
    assert details == ["", "cola_negative", "cola_caption", "cola_caption", ""]
    assert set(asked.values()) == {1} and len(asked) == 8
    generator.__dict__["opened_scorers"] = [(generator.scorers[0], lambda texts, micro_batch: np.zeros(1))]
    with pytest.raises(BuildFailed, match="1 scores for 8 texts"):
        made(generator)


def test_odd_texts_are_scored_or_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    odd = [("", "A dog."), ("A dog.", " \n"), ("A cat.", "A man riding " * 300)]
    odd += [("猫が座っている。", "قطة 🙂"), ("A bus.", "A man " * 300)]
    results = made(opened(source(scorer_folders, "vera", "cola", "clip"), negatives(tmp_path, odd)))
    assert [getattr(result, "reason", "") for result in results] == ["no-text", "no-text", "text-too-long", "", ""]


def test_wrong_settings_are_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="two scorers of one kind would fill one column"):
        source(scorer_folders, "cola", "cola")
    missing = source({**scorer_folders, "clip": tmp_path / "none"}, "cola", "clip")
    with pytest.raises(WrongUse, match=r"s\.scorers\.1\.model: there is no model folder"):
        missing.check_inputs("s", ["models"])
    source(scorer_folders, "cola", "clip").check_inputs("s", ["models", "media"])


def test_vera_is_its_head_on_the_end_of_the_text(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["vera"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5EncoderModel.from_pretrained(folder).eval()
    expected = []
    with torch.inference_mode():
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt").input_ids
            assert ids[0, -1] == tokenizer.eos_token_id
            end = model(input_ids=ids).last_hidden_state[0, -1]
            logit = float(end @ model.shared.weight[32099]) + BIAS
            expected.append(1 / (1 + np.exp(-logit / TEMPERATURE)))
    assert np.allclose(scored("vera", folder), expected, atol=1e-5) and np.ptp(expected) > 0.01


def test_cola_is_the_second_class(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["cola"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), Roberta.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = [float(model(**tokenizer(text, return_tensors="pt")).logits.softmax(dim=1)[0, 1]) for text in TEXTS]
    assert np.allclose(scored("cola", folder), expected, atol=1e-5) and np.ptp(expected) > 0.01


class Commas(ScorerSettings):
    """Commas of a text in tenths: a caption scorer as another package has one."""

    kind: Literal["mylab-commas"]

    score = "commas"
    title = "commas in tenths"
    reference = Reference("Commas", "", "@misc{commas2020, title = {Commas}}")

    def open(self, device: str) -> Scorer:
        return lambda texts, micro_batch: commas(texts)


def commas(texts: Sequence[str], by: Any = 0) -> NDArray[np.float64]:
    return (np.array([text.count(",") for text in texts]) + by) / 10


@pytest.mark.parametrize(
    ("problem", "name", "value"),
    [
        ("1 values for 4 texts", "open", lambda texts, size: np.zeros(1)),
        ("other scores in another order", "open", lambda texts, size: commas(texts, np.arange(len(texts)))),
        ("other scores one text a pass", "open", lambda texts, size: commas(texts, size)),
        ("vera gives a score 'vera' too", "score", "vera"),
        ("not one number from 0 to 1", "open", lambda texts, size: commas(texts, 20)),
        ("not unit embeddings", "of_pairs", True),
    ],
)
def test_what_breaks_the_contract_is_said(problem: str, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commas, name, (lambda self, device: value) if name == "open" else value)
    with pytest.raises(AssertionError, match=problem):
        check_scorer(Commas(kind="mylab-commas"))
