"""Files of scorers that are damaged, absent, of another model or in parts."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, RobertaForSequenceClassification, T5EncoderModel

from tests.generators.caption_scores.tiny_scorers import scored, settings
from twinset.contracts.errors import WrongUse
from twinset.generators.caption_scores.scorers.scorer import LAYOUT
from twinset.models.files import find_model


def test_a_base_model_is_no_scorer(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    model = RobertaForSequenceClassification.from_pretrained(scorer_folders["cola"])
    model.roberta.save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(scorer_folders["cola"]).save_pretrained(tmp_path / "base")
    with pytest.raises(WrongUse, match=r"base: the weights lack \d tensors .*classifier\..* would be random"):
        scored("cola", tmp_path / "base")


def damaged(folder: Path, to: Path, **files: str | None) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    for name, content in files.items():
        path = to / name.replace("_json", ".json").replace("_safetensors", ".safetensors")
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
    return to


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config_json": "{"}, r"cannot be loaded \(.*config\.json.*get its files again"),
        ({"model_safetensors": "no tensors"}, r"damaged: cannot be loaded \(.*get its files again"),
        ({"tokenizer_json": "{}"}, r"damaged: cannot be loaded \("),
    ],
)
def test_a_damaged_checkpoint_is_named(
    scorer_folders: dict[str, Path], tmp_path: Path, files: dict[str, str | None], said: str
) -> None:
    with pytest.raises(WrongUse, match=said):
        scored("language-model", damaged(scorer_folders["language-model"], tmp_path / "damaged", **files))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"model_safetensors": None}, r"lacks model\.safetensors or pytorch_model\.bin: put them into"),
        (
            {"config_json": None, "tokenizer_json": None},
            r"lacks config\.json, tokenizer\.json or spiece\.model or vocab",
        ),
    ],
)
def test_a_file_that_a_checkpoint_lacks_is_named(
    scorer_folders: dict[str, Path], tmp_path: Path, files: dict[str, str | None], said: str
) -> None:
    with pytest.raises(WrongUse, match=said):
        scored("vera", damaged(scorer_folders["vera"], tmp_path / "damaged", **files))


def test_weights_in_parts_are_digested_and_stay_in_a_folder(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = scorer_folders["vera"]
    copy = damaged(folder, tmp_path / "copy")
    assert settings("vera", copy).weights() == settings("vera", folder).weights()
    (copy / "model.safetensors").rename(copy / "model-1.safetensors")
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert [path.name for path in find_model(str(copy), LAYOUT).paths][-2:] == [index.name, "model-1.safetensors"]
    index.write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    with pytest.raises(WrongUse, match=r"lacks model-2\.safetensors, which model\.safetensors\.index\.json lists"):
        settings("vera", copy).weights()
    for content, said in (
        ({"weight_map": {"a": "../model-1.safetensors"}}, "leaves the folder"),
        ({"weight_map": 3}, "weight_map must give the file"),
        ([], "no JSON object"),
    ):
        index.write_text(json.dumps(content))
        with pytest.raises(WrongUse, match=said):
            settings("vera", copy).weights()


def test_other_models_weights_are_told_from_veras(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(scorer_folders["vera"], tmp_path / "t5")
    model = T5EncoderModel.from_pretrained(folder)
    with torch.no_grad():
        model.shared.weight[32097, 0] = -1
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match=r"temperature \(row 32097\) is -1\.0; not VERA's"):
        scored("vera", folder)
    model.resize_token_embeddings(100).requires_grad_(False)
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match="an embedding of 100 rows has no row 32099"):
        scored("vera", folder)
