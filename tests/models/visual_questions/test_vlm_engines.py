"""Any multimodal language model answers questions about images, one of a real structure through a whole source."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from tests.generators.image_verification.finished_images import HOME, Drawn, encoded, finish
from tests.models.visual_questions.tiny_vision_language import save
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.image_verification.source import ImageVerification
from twinset.models.visual_questions import vision_language
from twinset.models.visual_questions.settings import INSTRUCTION, Inquiry, Unanswered, YesOrNo
from twinset.shards.contracts import Context
from twinset.shards.media.decode import decode
from twinset.shards.storage.tar_reader import BrokenTar

QUESTIONS = ("Is there a dog ?", "Is the wall red ?", "Does this image show a cat ?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / "qwen2_vl", "qwen2_vl")


@pytest.fixture(autouse=True)
def _random_models_say_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_language, "LIKELIEST", 1000)


def engine(folder: Path) -> Any:
    return YesOrNo(kind="vlm", model=str(folder)).open()


def inquiry(image: bytes, questions: tuple[str, ...] = QUESTIONS) -> Inquiry:
    return Inquiry("a", image, "image/jpeg", questions)


def plain(folder: Path, image: Image.Image, question: str) -> float:
    """P(yes) / (P(yes) + P(no)) by the processor and the forward pass of transformers alone."""
    import torch
    import transformers

    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype="float32").eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    chat = [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": question}]}]
    read = processor.apply_chat_template(
        chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    with torch.inference_mode():
        shares = model(**read).logits[0, -1].double().softmax(-1)
    yes, no = (sum(shares[processor.tokenizer.convert_tokens_to_ids([one, one.title()])]) for one in ("yes", "no"))
    return float(yes / (yes + no))


def test_answers_are_those_of_the_plain_network(folder: Path) -> None:
    images = [encoded((200, 30, 30)), encoded((20, 90, 220), (64, 40))]
    found = engine(folder).answers([inquiry(one) for one in images])
    for image, answers in zip(images, found, strict=True):
        wanted = [plain(folder, decode(image, "a"), f"{one} {INSTRUCTION}") for one in QUESTIONS]
        assert answers == pytest.approx(wanted, abs=1e-5)
    assert len({one for row in found for one in row}) == 6
    assert engine(folder).answers([inquiry(images[1], QUESTIONS[1:2])]) == [found[1][1:2]]
    assert engine(folder).answers([inquiry(images[0], ())]) == [[]]


def test_what_cannot_be_answered_is_a_reason_or_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenTar, match="a: "):
        engine(folder).answers([inquiry(b"no image")])
    (thin,) = engine(folder).answers([inquiry(encoded((1, 2, 3), (400, 1)))])
    assert isinstance(thin, Unanswered) and thin.reason == "refused" and "400 x 1" in thin.detail
    broken = save(tmp_path / "broken", "qwen2_vl")
    weights = load_file(broken / "model.safetensors")
    weights["lm_head.weight"].fill_(float("nan"))
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    (nothing,) = engine(broken).answers([inquiry(encoded((1, 2, 3)))])
    assert isinstance(nothing, Unanswered) and nothing.reason == "no-answer"
    (broken / "tokenizer.json").unlink()
    source = ImageVerification(kind="image-verification", images=HOME, engine={"kind": "vlm", "model": str(broken)})
    with pytest.raises(WrongUse, match=r"stages\.v\.source\.engine\.model: .*tokenizer\.json"):
        source.check_inputs("stages.v.source", {"models"})


def test_it_verifies_images_of_a_stage(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = finish(tmp_path, [Drawn("A red dog on a bench.", "A red cat on a bench.", one) for one in range(2)])
    settings = {"kind": "image-verification", "images": HOME, "engine": {"kind": "vlm", "model": str(folder)}}
    source = ImageVerification.model_validate(settings)
    generator = source.open(Context("verified", earlier=lambda _: earlier))
    assert (generator.runs_on(), generator.batch_size()) == ("cpu", 1)
    assert [*generator.weights()] == ["answers"]
    planned = list(generator.plan())
    made = list(generator.make(planned))
    assert all(isinstance(one, TableRows) for one in made)
    asked = [{one["question"] for one in json.loads(row.rows[0]["questions"])} for row in made]  # type: ignore[union-attr]
    assert asked[0] == {'Does this figure show "A red dog on a bench."?'}
    monkeypatch.setattr(vision_language, "LIKELIEST", 1)
    silent = source.open(Context("verified", earlier=lambda _: earlier))
    assert [one.reason for one in silent.make(planned) if isinstance(one, Rejected)] == ["no-answer"] * 2
