"""BLIP and ViLT of tiny width: their answers are those of the plain networks, whatever else is asked."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertTokenizer,
    BlipForQuestionAnswering,
    BlipImageProcessor,
    ViltForQuestionAnswering,
    ViltImageProcessor,
)

from tests.generators.image_verification.finished_images import encoded
from tests.models.visual_questions.tiny_models import save_blip, save_vilt
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.models.files import ModelMissing
from twinset.models.visual_questions.local_model import LONGEST, LocalModel
from twinset.models.visual_questions.settings import Inquiry, Transformers, Unanswered, find_answerer
from twinset.shards.media.decode import decode
from twinset.shards.storage.tar_reader import BrokenTar

QUESTIONS = (
    "Is there a dog?",
    "Is the ball red?",
    "Is the man sitting on the bench to the left of the dog?",
    "Are there dogs?",
    "Does the dog have a ball?",
)
IMAGES = [encoded((200, 30, 30)), encoded((20, 90, 220), (64, 40))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    at = tmp_path_factory.mktemp("models")
    return {"blip": save_blip(at / "blip"), "vilt": save_vilt(at / "vilt")}


def engine(folder: Path, **settings: Any) -> LocalModel:
    return LocalModel(Transformers(kind="transformers", model=str(folder), **settings))


def inquiry(image: bytes = IMAGES[0], questions: tuple[str, ...] = QUESTIONS) -> Inquiry:
    return Inquiry("a", image, "image/jpeg", questions)


def plain_blip(folder: Path, image: bytes, question: str) -> float:
    """Asked alone, without padding, by the network's own forward pass."""
    words, model = BertTokenizer.from_pretrained(folder), BlipForQuestionAnswering.from_pretrained(folder).eval()
    pixels = BlipImageProcessor.from_pretrained(folder)(images=[decode(image, "a")], return_tensors="pt")
    with torch.inference_mode():
        begin = torch.tensor([[words.convert_tokens_to_ids("[DEC]")]])
        said = words(question, return_tensors="pt")
        asked = model.text_encoder(
            input_ids=said.input_ids,
            attention_mask=said.attention_mask,
            encoder_hidden_states=model.vision_model(**pixels).last_hidden_state,
        ).last_hidden_state
        logits = model.text_decoder(input_ids=begin, encoder_hidden_states=asked).logits[0, -1]
        generated = model.generate(input_ids=said.input_ids, attention_mask=said.attention_mask, max_length=3, **pixels)
    assert int(logits.argmax()) == int(generated[0, 1])  # the first token that the model itself would say
    both = logits[words.convert_tokens_to_ids(["yes", "no"])]
    return float(both.double().softmax(0)[0])


def plain_vilt(folder: Path, image: bytes, question: str) -> float:
    words, model = BertTokenizer.from_pretrained(folder), ViltForQuestionAnswering.from_pretrained(folder).eval()
    pixels = ViltImageProcessor.from_pretrained(folder)(images=[decode(image, "a")], return_tensors="pt")
    with torch.inference_mode():
        logits = model(**words(question, return_tensors="pt"), **pixels).logits[0]
    return float(torch.stack([logits[model.config.label2id[one]] for one in ("yes", "no")]).double().softmax(0)[0])


@pytest.mark.parametrize(("name", "plain"), [("blip", plain_blip), ("vilt", plain_vilt)])
def test_answers_are_those_of_the_plain_network(folders: dict[str, Path], name: str, plain: Any) -> None:
    asking = engine(folders[name], micro_batch=3)
    found = asking.answers([inquiry(image) for image in IMAGES])
    expected = [[plain(folders[name], image, question) for question in QUESTIONS] for image in IMAGES]
    for given, wanted in zip(found, expected, strict=True):
        assert given == pytest.approx(wanted, abs=1e-5)
    flat = [one for row in expected for one in row]
    assert max(flat) - min(flat) > 0.01  # they are not all the same


@pytest.mark.parametrize("name", ["blip", "vilt"])
def test_an_answer_does_not_depend_on_the_others(folders: dict[str, Path], name: str) -> None:
    asking = engine(folders[name], micro_batch=4)
    (together,) = asking.answers([inquiry()])
    for question, answer in zip(QUESTIONS, together, strict=True):  # type: ignore[arg-type]
        assert asking.answers([inquiry(IMAGES[1]), inquiry(questions=(question,))])[1] == [answer]


def test_nothing_asked_nothing_answered(folders: dict[str, Path]) -> None:
    assert engine(folders["blip"]).answers([inquiry(questions=())]) == [[]]


def test_a_question_is_never_cut(folders: dict[str, Path]) -> None:
    fits = "red " * (LONGEST - 2)
    found = engine(folders["vilt"], micro_batch=1).answers(
        [inquiry(questions=(f"{fits}red",)), inquiry(questions=(fits,))]
    )
    assert isinstance(found[0], Unanswered) and found[0].reason == "question-too-long"
    assert f"{LONGEST + 1} tokens, {LONGEST} are read" in found[0].detail
    assert isinstance(found[1], list)


def test_broken_weights_answer_nothing(tmp_path: Path) -> None:
    folder = save_vilt(tmp_path / "vilt")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.3.bias"].fill_(float("nan"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (found,) = engine(folder).answers([inquiry()])
    assert isinstance(found, Unanswered) and found.reason == "no-answer"


def test_a_broken_image_is_named(folders: dict[str, Path]) -> None:
    with pytest.raises(BrokenTar, match="a: an image cannot be read"):
        engine(folders["blip"]).answers([inquiry(IMAGES[0][:100])])


def test_memory_that_runs_out_while_loading_fails_the_build(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(BlipForQuestionAnswering, "from_pretrained", full)
    with pytest.raises(BuildFailed, match=r"memory runs out while .*blip is loaded"):
        engine(folders["blip"]).answers([inquiry()])


@pytest.mark.parametrize(
    ("save", "lost"),
    [(save_blip, "text_decoder.bert.encoder.layer.1.output.dense.weight"), (save_vilt, "classifier.3.bias")],
)
def test_weights_that_lack_tensors_are_refused(tmp_path: Path, save: Any, lost: str) -> None:
    folder = save(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    del weights[lost]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WrongUse, match=rf"lack 1 tensors .*{lost}.*would be random"):
        engine(folder).answers([inquiry()])


def test_a_tokenizer_whose_length_is_no_number_is_refused(tmp_path: Path) -> None:
    path = save_blip(tmp_path / "model") / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": [512]}))
    with pytest.raises(WrongUse, match=r"tokenizer_config\.json: model_max_length is \[512\]; fetch the model again"):
        engine(path.parent).answers([inquiry()])


def test_threads_and_random_numbers_stay(folders: dict[str, Path]) -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    engine(folders["vilt"], threads=threads + 1).answers([inquiry()])
    assert torch.get_num_threads() == threads and torch.equal(torch.rand(3), expected)


def test_a_smaller_micro_batch_keeps_the_network(folders: dict[str, Path]) -> None:
    asking = engine(folders["blip"], micro_batch=8)
    (first,) = asking.answers([inquiry()])
    smaller = asking.with_micro_batch(2)
    assert smaller.loaded is asking.loaded and (smaller.micro_batch, asking.micro_batch) == (2, 8)
    assert smaller.answers([inquiry()])[0] == pytest.approx(first, abs=1e-6)


def test_weights_are_of_all_files(folders: dict[str, Path], tmp_path: Path) -> None:
    assert engine(folders["blip"]).weights() != engine(save_blip(tmp_path / "other", seed=1)).weights()
    used = {path.name for path in find_answerer(str(save_blip(tmp_path / "again"))).paths}
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= used


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "preprocessor_config.json").unlink(), "lacks preprocessor_config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"lacks model\.safetensors or pytorch_model\.bin"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "clip"}'), "of type 'clip'"),
        (lambda folder: (folder / "config.json").write_text("{}"), "of type None"),
    ],
)
def test_other_folders_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    folder = save_vilt(tmp_path / "vilt")
    change(folder)
    with pytest.raises(ModelMissing, match=message):
        find_answerer(str(folder))
    with pytest.raises(WrongUse, match=rf"engine\.model: .*{message}"):
        Transformers(kind="transformers", model=str(folder)).check_inputs("engine", ["models"])


def test_a_model_without_yes_and_no_is_refused(tmp_path: Path) -> None:
    vilt = save_vilt(tmp_path / "vilt", labels=("cat", "dog"))
    with pytest.raises(WrongUse, match="yes and no are not among its answers"):
        engine(vilt).answers([inquiry()])
    blip = save_blip(tmp_path / "blip")
    words = json.loads((blip / "tokenizer.json").read_text())
    words["model"]["vocab"] = {
        ("perhaps" if word == "yes" else word): number for word, number in words["model"]["vocab"].items()
    }
    (blip / "tokenizer.json").write_text(json.dumps(words))
    (blip / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(WrongUse, match="no token for yes or no"):
        engine(blip).answers([inquiry()])
