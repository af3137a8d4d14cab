"""Four architectures: likelihoods are those of transformers' own pass, an image is read once for all its texts."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.visual_questions.tiny_vision_language import KINDS, pictures, save
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import Running
from twinset.models.visual_questions.vision_language import VisionLanguageModel

FAST = Running(threads=1)
TEXTS = [f'Does this figure show "{what}" ? Please answer yes or no .' for what in ("a red wall", "a cat on the mat")]


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / request.param, request.param)


def reference(folder: Path, images: list[Image.Image], text: str) -> torch.Tensor:
    """Log-probabilities of the first token by the processor and the forward pass of transformers alone."""
    import transformers

    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype="float32").eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    shown = [{"type": "image", "image": image} for image in images]
    chat = [{"role": "user", "content": [*shown, {"type": "text", "text": text}]}]
    how: dict[str, Any] = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
    with torch.inference_mode():
        return model(**processor.apply_chat_template(chat, **how)).logits[0, -1].log_softmax(-1)


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_token_is_as_likely_as_in_transformers_own_pass(folder: Path, count: int) -> None:
    model, images = VisionLanguageModel(str(folder), FAST), pictures(count)
    found = model.next_tokens(images, TEXTS)
    for text, one in zip(TEXTS, found, strict=True):
        assert torch.allclose(one, reference(folder, images, text), atol=1e-5, rtol=0)
    assert model._shares and model.images_read == 3  # two of them to see that sharing changes nothing
    model.next_tokens(pictures(count, seed=1), TEXTS)
    assert model.images_read == 4
    assert torch.equal(model.next_tokens(images, TEXTS[::-1])[1], found[0]), "bits do not depend on what else is asked"


def test_yes_is_divided_by_yes_and_no_over_all_spellings(folder: Path) -> None:
    model, images = VisionLanguageModel(str(folder), FAST), pictures(1)
    vocabulary = model.tokenizer.get_vocab()
    likely = reference(folder, images, TEXTS[0]).double().exp()
    yes, no = (float(sum(likely[vocabulary[word]] for word in words)) for words in (("yes", "Yes"), ("no", "No")))
    found = model.yes(images, TEXTS[:1])[0]
    best = sorted(likely.tolist())[-20]
    assert (
        found is None
        if max(float(likely[vocabulary[w]]) for w in ("yes", "Yes", "no", "No")) < best
        else (found == pytest.approx(yes / (yes + no), abs=1e-5))
    )


def test_other_answers_than_yes_and_no_are_weighed_alike(folder: Path) -> None:
    model, images = VisionLanguageModel(str(folder), FAST), pictures(1)
    vocabulary = model.tokenizer.get_vocab()
    likely = reference(folder, images, TEXTS[0]).double().exp()
    red, blue = (float(likely[vocabulary[word]]) for word in ("red", "blue"))
    for answers, share in ((("red", "blue"), red / (red + blue)), (("blue", "red"), blue / (red + blue))):
        found = model.yes(images, TEXTS[:1], answers)[0]
        assert found is None or found == pytest.approx(share, abs=1e-5)
    with pytest.raises(WrongUse, match="no token for a or zebra"):
        model.yes(images, TEXTS[:1], ("a", "zebra"))


@pytest.mark.parametrize("fails", [False, True])
def test_what_follows_an_image_may_change_how_it_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """A model of which the shared pass gives something else reads each prompt whole, and says so."""
    model, images = VisionLanguageModel(str(folder), FAST), pictures(1)
    whole, forward = model.next_tokens(images, TEXTS), model.model.forward
    monkeypatch.setattr(model, "_shares", None)

    def other(**given: Any) -> Any:
        out = forward(**given)
        if fails and given.get("past_key_values") is not None:
            raise ValueError("no cache like this one")
        if given.get("past_key_values") is not None:
            out.logits = out.logits.flip(-1)
        return out

    monkeypatch.setattr(model.model, "forward", other)
    for one, expected in zip(model.next_tokens(images, TEXTS), whole, strict=True):
        assert torch.allclose(one, expected, atol=1e-5)
    assert model._shares is False


def test_it_writes_to_an_end_or_to_the_greatest_length(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.models.visual_questions.vision_language.WRITTEN", 5)
    model = VisionLanguageModel(str(folder), FAST)
    answer = model.write(pictures(1), TEXTS[0])
    assert answer.completion_tokens <= 5 and answer.prompt_tokens > 20 and answer.finish in ("stop", "length")
    first = int(reference(folder, pictures(1), TEXTS[0]).argmax())
    model.model.generation_config.eos_token_id = [first]
    assert model.write(pictures(1), TEXTS[0]).finish == "stop"
    for weight in model.model.parameters():
        weight.data.fill_(np.nan)
    assert model.write(pictures(1), TEXTS[0]).finish == "not a number"
    assert np.isnan(model.yes(pictures(1), TEXTS)).all()  # type: ignore[arg-type]


def copied(folder: Path, to: Path, name: str, old: str, new: str) -> Path:
    shutil.copytree(folder, to)
    path = to / name
    path.write_text(path.read_text().replace(old, new, 1))
    return to


def test_folders_that_are_no_such_model_are_refused(tmp_path: Path, folder: Path) -> None:
    for number, (name, old, new, problem) in enumerate(
        (
            ("config.json", '"model_type": "', '"model_type": "un', "transformers opens no 'un"),
            ("config.json", "{", '{"is_encoder_decoder": true, ', "an encoder of texts beside its decoder"),
            ("chat_template.jinja", "{%", "{{ 'a' * 99999999999 }}{%", "its chat template multiplies"),
            ("config.json", "{", '{"quantization_config": {"quant_method": "awq"}, ', "its weights are quantized"),
        )
    ):
        with pytest.raises(WrongUse, match=problem):
            VisionLanguageModel(str(copied(folder, tmp_path / f"{number}", name, old, new)), FAST)
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("model.safetensors"))
    (bare / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(WrongUse, match=r"lacks model\.safetensors"):
        VisionLanguageModel(str(bare), FAST)
    code = copied(
        folder, tmp_path / "code", "config.json", "{", '{"auto_map": {"AutoModelForImageTextToText": "evil.Evil"}, '
    )
    (code / "evil.py").write_text("raise SystemExit('code of the folder ran')")
    assert VisionLanguageModel(str(code), FAST).next_tokens(pictures(1), TEXTS[:1])
    from safetensors.torch import load_file, save_file

    lacks = copied(folder, tmp_path / "lacks", "config.json", "{", "{")
    tensors = load_file(lacks / "model.safetensors")
    tensors.pop(sorted(name for name in tensors if "layers.0" in name)[0])
    save_file(tensors, lacks / "model.safetensors", {"format": "pt"})
    with pytest.raises(WrongUse, match="lack 1 tensors"):
        VisionLanguageModel(str(lacks), FAST)
