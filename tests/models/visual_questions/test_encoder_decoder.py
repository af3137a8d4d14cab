"""BLIP-2 and InstructBLIP with T5: answers are as likely as in transformers' own pass, an image is seen once."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.visual_questions.tiny_vision_language import ENCODING, pictures, save
from twinset.evaluation.scorers.kinds import open_model
from twinset.evaluation.scorers.prompted import PromptedChooser, PromptedYes
from twinset.models.encoders.contract import NotApplicable, Question, Running
from twinset.models.visual_questions import vision_language
from twinset.models.visual_questions.encoder_decoder import EncoderDecoder, open_vision_language

FAST = Running(threads=1)
ASKED = ['Does this figure show "a red wall" ? Please answer yes or no .', "Describe this image in one sentence ."]
CAPTIONS = ["a red wall without windows", "a blue wall", "a"]


@pytest.fixture(scope="module", params=ENCODING)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / request.param, request.param)


def reference(folder: Path, image: Image.Image, text: str, answer: str) -> torch.Tensor:
    """Log-probabilities of the tokens of an answer, and of each token after it, by transformers alone."""
    import transformers

    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype="float32").eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    read = processor(images=image, text=text, return_tensors="pt")
    labels = processor.tokenizer(answer, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = model(**{key: read[key] for key in read if key != "token_type_ids"}, labels=labels).logits[0]
    return logits.log_softmax(-1).gather(1, labels[0][:, None])[:, 0]


def test_the_first_token_is_as_likely_as_in_transformers_own_pass(folder: Path) -> None:
    model, (image, other) = open_vision_language(str(folder), FAST), pictures(2)
    assert isinstance(model, EncoderDecoder)
    first = model.next_tokens([image], ASKED)
    assert model.images_read == (1 if folder.name == "blip-2" else 2)
    for text, one in zip(ASKED, first, strict=True):
        words = [float(one[model.tokenizer.get_vocab()[word]]) for word in ("yes", "No")]
        assert words == pytest.approx([float(reference(folder, image, text, word)) for word in ("yes", "No")], abs=1e-5)
        assert torch.equal(model.next_tokens([image], [text])[0], one), "alone, as after a run that was killed"
    assert not torch.allclose(model.next_tokens([other], ASKED)[0], first[0], atol=1e-3)


def test_all_ways_to_ask_give_scores(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path))
    monkeypatch.setattr(vision_language, "LIKELIEST", 1000)
    monkeypatch.setattr(vision_language, "WRITTEN", 4)
    yes = open_model(f"vlm:{folder}", FAST)
    assert isinstance(yes, PromptedYes)
    shown = pictures(2)
    scores = yes.score([shown[0], *shown], [*CAPTIONS[:2], CAPTIONS[1]])
    assert ((scores[:, 0] > 0) & (scores[:, 0] < 1)).all() and len({*scores[:, 0].tolist()}) == 3
    chooser = open_model(f"vlm/choose:{folder}", FAST)
    assert isinstance(chooser, PromptedChooser)
    with pytest.raises(NotApplicable, match="reads one image, and a prompt shows it 2"):
        chooser.choose([Question("image", tuple(shown), ("a red wall",))])
    joined = open_model(f"vlm/choose-joined:{folder}", FAST)
    assert isinstance(joined, PromptedChooser)
    assert isinstance(joined.choose([Question("image", tuple(shown), ("a red wall",))])[0], str | tuple)
    model = open_vision_language(str(folder), FAST)
    answer = model.write(shown[:1], ASKED[1])
    assert 1 <= answer.completion_tokens <= 4 and answer.finish in ("stop", "length")
    best = int(model.next_tokens(shown[:1], ASKED[1:])[0].argmax())
    model.model.generation_config.eos_token_id = [best]
    assert model.write(shown[:1], ASKED[1]).completion_tokens == 1
    assert not np.isnan(scores).any()
