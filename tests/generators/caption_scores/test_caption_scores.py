"""The stage, and its scorers: on published layouts against transcriptions, damaged, and of another package."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import open_clip
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from transformers import AutoTokenizer, CLIPModel, T5EncoderModel
from transformers import RobertaForSequenceClassification as Roberta

from tests.generators.caption_scores.tiny_scorers import (
    BIAS,
    MODELS,
    TEMPERATURE,
    TEXTS,
    save_open_clip,
    scored,
)
from tests.generators.finished_stage import write_index
from twinset import check_scorer
from twinset.cards.lineage import cited
from twinset.contracts.canonical import identity_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.references import Reference
from twinset.generators.caption_scores.scorers.scorer import Scorer, ScorerSettings
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage


@pytest.fixture(scope="session")
def scorer_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("tiny-scorers")
    return {kind: save(root / kind) for kind, save in MODELS.items()}


COLUMNS_ALIKE = {"image": "", "type": "add", "subtype": "obj"}


def negatives(folder: Path, pairs: Sequence[tuple[str, str]]) -> FinishedStage:
    """A finished stage with a row for each caption and negative."""
    rows = [
        {
            **COLUMNS_ALIKE,
            "key": f"negatives-{number}",
            "identity": identity_of(f"add_obj/{number}"),
            "caption_id": f"add_obj/{number}",
            "image_id": f"{number}.jpg",
            "caption": caption,
            "negative_caption": negative,
        }
        for number, (caption, negative) in enumerate(pairs)
    ]
    schema = pa.schema([("key", pa.string()), ("identity", pa.string()), *COLUMNS])
    return write_index(pa.Table.from_pylist(rows, schema), folder, "negatives", len(rows), 1000)


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
    found = [getattr(one, "detail", "") for one in made(generator)]
    assert found == ["", "cola_negative", "cola_caption", "cola_caption", ""]
    assert set(asked.values()) == {1} and len(asked) == 8


def test_rows_of_a_caption_come_together_with_the_identity_that_they_had(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    planned = list(opened(source(scorer_folders, "cola"), negatives(tmp_path, PAIRS)).plan())
    assert [one.identity for one in planned] == [f'["add_obj/{n}"]' for n in (0, 2, 1, 3)]
    assert planned[0].group == planned[1].group != planned[2].group == planned[3].group
    assert [one.values["image_id"] for one in planned] == ["0.jpg", "2.jpg", "1.jpg", "3.jpg"]


def test_scores_stand_in_their_columns(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    same = ("A dog.", "A dog.")
    table = negatives(tmp_path, (*PAIRS, same))
    rows = [
        one.rows[0] for one in made(opened(source(scorer_folders, "cola", "clip"), table)) if isinstance(one, TableRows)
    ]
    assert len(rows) == 5 and set(TEXT_SCORES) <= rows[0].keys()
    for row in rows:
        assert 0 < float(row["cola_caption"] or 0) < 1 and row["cola_negative"] != row["vera_negative"] is None
        assert -1 <= float(row["similarity"] or 0) <= 1 + 1e-6
    by_negative = {row["negative_caption"]: row for row in rows}
    assert by_negative["A dog."]["similarity"] == pytest.approx(1)
    assert by_negative["A dog."]["cola_negative"] == by_negative["A dog."]["cola_caption"]


def test_odd_texts_are_scored_or_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    odd = [("", "A dog."), ("A dog.", " \n"), ("A dog.", "A man riding " * 800_000)]
    odd += [("猫が座っている。", "قطة 🙂"), ("A dog.", "A man " * 300)]
    generator = opened(source(scorer_folders, "vera", "cola", "clip"), negatives(tmp_path, odd))
    rows = zip(generator.plan(), made(generator), strict=True)
    found = {json.loads(one.identity)[0][-1]: getattr(result, "reason", "") for one, result in rows}
    reasons = [found[number] for number in "01234"]
    assert reasons == ["no-text", "no-text", "text-too-long", "", ""]
    only_empty = opened(source(scorer_folders, "cola"), negatives(tmp_path / "empty", [("", "")]))
    assert [getattr(one, "reason", "") for one in made(only_empty)] == ["no-text"]


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
    found = scored("vera", folder)
    assert np.allclose(found, expected, atol=1e-5) and np.ptp(found) > 0.01


def test_cola_is_the_second_class_and_loads_from_a_pickle_without_code(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["cola"]
    assert (folder / "pytorch_model.bin").is_file() and not (folder / "model.safetensors").exists()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Roberta.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = [float(model(**tokenizer(text, return_tensors="pt")).logits.softmax(dim=1)[0, 1]) for text in TEXTS]
    assert np.allclose(scored("cola", folder), expected, atol=1e-5) and np.ptp(expected) > 0.01


def test_clip_gives_unit_embeddings_of_transformers(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["clip"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = CLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        full = tokenizer(list(TEXTS), padding="max_length", max_length=77, return_tensors="pt")
        embeds = model(**full, pixel_values=torch.zeros(1, 3, *[model.config.vision_config.image_size] * 2)).text_embeds
    expected = (embeds / embeds.norm(dim=1, keepdim=True)).numpy()
    assert np.allclose(scored("clip", folder), expected, atol=1e-5)


def test_clip_gives_unit_embeddings_of_open_clip_with_its_activation(tmp_path: Path) -> None:
    quick = save_open_clip(tmp_path / "quick", quick_gelu=True)
    model = open_clip.create_model(f"local-dir:{quick}").eval()
    with torch.inference_mode():
        expected = model.encode_text(open_clip.tokenize(list(TEXTS)), normalize=True).numpy()
    found = scored("clip", quick)
    assert np.allclose(found, expected, atol=1e-5)
    slow = save_open_clip(tmp_path / "slow", quick_gelu=False)
    assert not np.allclose(scored("clip", slow), expected, atol=1e-4)


def copy(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_other_models_weights_are_told_from_veras(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = copy(scorer_folders["vera"], tmp_path / "t5")
    model = T5EncoderModel.from_pretrained(folder)
    with torch.no_grad():
        model.shared.weight[32097, 0] = -1
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match=r"not VERA's weights: row 32097 of the embedding has no temperature"):
        scored("vera", folder)


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


def test_a_scorer_of_another_package_has_columns_after_those_of_every_table(
    bring: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_scorer(Commas(kind="mylab-commas"))
    bring("mylab", "twinset.caption_scorers", **{"mylab-commas": f"{__name__}:Commas"})
    given = {"kind": "caption-scores", "negatives": "negatives", "scorers": [{"kind": "mylab-commas"}]}
    source = CaptionScores.model_validate(given)
    context = Context("scores", earlier=lambda _: negatives(tmp_path, [("A dog.", "A dog, a cat.")]))
    check_source(source, context)
    generator = source.open(context)
    (made,) = generator.make(list(generator.plan()))
    row = cast(TableRows, made).rows[0]
    assert generator.row_schema.names[-7:] == [*TEXT_SCORES, "commas_caption", "commas_negative"]
    assert (row["commas_caption"], row["commas_negative"], row["vera_caption"]) == (0, 0.1, None)
    assert [part.package for _, part in source.parts()] == ["", "mylab 1.0"] and generator.weights() == {}
    citations = "".join(cited(source))
    assert "@misc{commas2020" in citations and "liu2023vera" not in citations
    monkeypatch.setattr(Commas, "open", lambda self, device: lambda texts, size: commas(texts[:1]))
    said = r"caption scorer 'mylab-commas' of mylab 1\.0: 1 scores for 2 texts"
    with pytest.raises(BuildFailed, match=said):
        list(source.open(context).make(list(generator.plan())))
