"""Networks that are asked about images: answers are as likely as in transformers' own pass, whatever else is asked."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tests.models.visual_questions.tiny_models import save_blip, save_vilt
from tests.models.visual_questions.tiny_vision_language import ENCODING, KINDS, pictures, save
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.models.language_models.answers import NOT_A_NUMBER, REFUSED, YES_NO, Answer, Request, ShownImage, question
from twinset.models.visual_questions import vision_language
from twinset.models.visual_questions.local_model import LONGEST
from twinset.models.visual_questions.settings import VisionLanguage, VisualQuestions
from twinset.models.visual_questions.vision_language import open_vision_language
from twinset.shards.storage.tar_reader import BrokenTar

TEXTS = [f'Does this figure show "{what}" ? Please answer yes or no .' for what in ("a red wall", "a cat on the mat")]
ANSWERERS = {"blip": save_blip, "vilt": save_vilt}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("models")
    for kind in (*KINDS, *ENCODING):
        save(at / kind, kind)
    for kind, save_answerer in ANSWERERS.items():
        save_answerer(at / kind)
    return at


@pytest.fixture(autouse=True)
def _random_models_say_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_language, "LIKELY", 0)


def engine(folder: Path, **settings: Any) -> Any:
    kind: Any = ("vqa", VisualQuestions) if folder.name in ANSWERERS else ("vlm", VisionLanguage)
    return kind[1](kind=kind[0], model=str(folder), **settings).open()


def asked(*images: Any, texts: Any = TEXTS) -> list[Request]:
    shown = [ShownImage(image, key="a") for image in images]
    return [question(text, (image,), YES_NO) for image in shown for text in texts]


@cache
def opened(folder: Path) -> tuple[Any, Any]:
    name = {"blip": "BlipForQuestionAnswering", "vilt": "ViltForQuestionAnswering"}
    kind: Any = getattr(transformers, name.get(folder.name, "AutoModelForImageTextToText"))
    return kind.from_pretrained(folder, dtype="float32").eval(), transformers.AutoProcessor.from_pretrained(folder)


def plain(folder: Path, images: list[Image.Image], text: str) -> torch.Tensor:
    """Log-probabilities of the first token of an answer, of ViLT those of its answers, by transformers alone."""
    model, processor = opened(folder)
    if folder.name in KINDS:
        shown = [{"type": "image", "image": image} for image in images]
        chat = [{"role": "user", "content": [*shown, {"type": "text", "text": text}]}]
        how: dict[str, Any] = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}
        read = processor.apply_chat_template(chat, add_generation_prompt=True, **how)
    else:
        read = processor(images=images, text=text, return_tensors="pt")
    read.pop("token_type_ids", None) if folder.name in ENCODING else None
    how = {"max_new_tokens": 1, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    with torch.inference_mode():
        logits: Any = model(**read) if folder.name == "vilt" else model.generate(**read, **how)
    return torch.as_tensor(logits.logits[0]).reshape(-1).log_softmax(-1)


def share(folder: Path, images: list[Image.Image], text: str, words: tuple[str, str] = YES_NO) -> float:
    """P(first) / (P(first) + P(second)), over all spellings."""
    if folder.name == "vilt":
        known = json.loads((folder / "config.json").read_text())["label2id"]
    else:
        known = opened(folder)[1].tokenizer.get_vocab()
    shares = plain(folder, images, text).double().exp()
    first, second = (sum(float(shares[n]) for token, n in known.items() if token.lower() == word) for word in words)
    return first / (first + second)


@pytest.mark.parametrize("kind", [*KINDS, *ENCODING, *ANSWERERS])
def test_yes_is_as_likely_as_in_transformers_own_pass_alone_and_beside_others(models: Path, kind: str) -> None:
    torch.manual_seed(5)
    expected, images = torch.rand(3), pictures(2)
    torch.manual_seed(5)
    torch.set_num_threads(2)
    model = engine(models / kind, threads=1)
    answers = model.ask(asked(*images))
    assert torch.get_num_threads() == 2 and torch.equal(torch.rand(3), expected)
    torch.set_num_threads(1)  # two wait for each other busily
    for request, answer in zip(asked(*images), answers, strict=True):
        own = share(models / kind, [request.images[0].pixels], request.text)
        assert answer.probability == pytest.approx(own, abs=1e-5)
    assert len({answer.probability for answer in answers}) == len(answers)
    assert model.ask(asked(images[1], texts=TEXTS[1:])) == answers[-1:], "as after a run that was killed"
    assert model.ask([]) == []
    smaller = model.with_micro_batch(1)
    assert smaller.loaded is model.loaded and smaller.micro_batch == 1
    near = [pytest.approx(answer.probability, abs=1e-6) for answer in answers[:2]]
    assert [answer.probability for answer in smaller.ask(asked(images[0]))] == near


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_read_once_for_all_its_texts(models: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, images = open_vision_language(str(models / kind), Running(threads=1)), pictures(2)
    whole = [plain(models / kind, images, text) for text in TEXTS]
    for tokens, expected in zip(model.next_tokens(images, TEXTS), whole, strict=True):
        assert torch.allclose(tokens, expected, atol=1e-5, rtol=0)
    assert model._shares and model.images_read == 3  # two of them to see that sharing changes nothing
    (answer,) = model.ask([question(TEXTS[0], [ShownImage(image) for image in images], ("red", "blue"))], 5)
    assert model.images_read == 4
    own = share(models / kind, images, TEXTS[0], ("red", "blue"))
    assert answer.probability == pytest.approx(own, abs=1e-5)
    forward = model.model.forward

    def changed(**given: Any) -> Any:
        out = forward(**given)
        out.logits = out.logits if given.get("past_key_values") is None else out.logits.flip(-1)
        return out

    monkeypatch.setattr(model.model, "forward", changed)
    model._shares = None
    for tokens, expected in zip(model.next_tokens(images, TEXTS), whole, strict=True):
        assert torch.allclose(tokens, expected, atol=1e-5, rtol=0), "where a shared pass gives something else"
    assert model._shares is False


@pytest.mark.parametrize("kind", [*KINDS, *ENCODING])
def test_it_writes_to_an_end_or_to_the_greatest_length(models: Path, kind: str) -> None:
    model, (image,) = open_vision_language(str(models / kind), Running(threads=1)), pictures(1)
    write = [question(TEXTS[0], [ShownImage(image)])]
    (answer,) = model.ask(write, 5)
    assert 1 <= answer.completion_tokens <= 5 and answer.prompt_tokens > 5 and answer.finish in ("stop", "length")
    model.model.generation_config.eos_token_id = [int(plain(models / kind, [image], TEXTS[0]).argmax())]
    assert model.ask(write, 5)[0].finish == "stop"
    for weight in model.model.parameters():
        weight.data.fill_(np.nan)
    assert {answer.finish for answer in model.ask([*write, *asked(image)], 5)} == {NOT_A_NUMBER}
    if kind in ENCODING:
        with pytest.raises(NotApplicable, match="reads one image, and a prompt shows it 2"):
            model.next_tokens(pictures(2), TEXTS)


def test_what_cannot_be_answered_is_refused_alone(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vilt, chats = engine(models / "vilt"), engine(models / "qwen2_vl")
    usual, fits = pictures(1)[0], "red " * (LONGEST - 2)
    cut, kept = vilt.ask(asked(usual, texts=(f"{fits}red", fits)))
    assert (cut.finish, cut.text) == (REFUSED, f"{LONGEST + 1} tokens, {LONGEST} are read") and kept.probability
    thin, wide = chats.ask(asked(Image.new("RGB", (400, 1)), usual, texts=TEXTS[:1]))
    assert thin.finish == REFUSED and "400 x 1" in thin.text and wide.probability
    monkeypatch.undo()  # each of the many tokens has a small share
    neither = [question(text, [ShownImage(usual)], ("mat", "windows")) for text in TEXTS]
    assert chats.ask(neither) == [Answer()] * 2
    vilt.loaded.model.classifier[3].bias.data.fill_(np.nan)
    assert {answer.finish for answer in vilt.ask(asked(usual))} == {NOT_A_NUMBER}
    for model in (vilt, chats):
        with pytest.raises(BrokenTar, match="a: "):
            model.ask(asked(b"no image"))


@pytest.mark.parametrize(
    ("kind", "name", "old", "new", "problem"),
    [
        ("vilt", "config.json", '"vilt"', '"clip"', "model_type is 'clip', and must be blip or vilt"),
        ("vilt", "config.json", '"yes"', '"maybe"', "yes and no are not among its answers"),
        ("blip", "tokenizer.json", '"yes"', '"perhaps"', "no token for yes or no"),
        ("llava", "chat_template.jinja", "{%", "{{ 'a' * 99999999999 }}{%", "its chat template multiplies"),
    ],
)
def test_refused_folders(models: Path, tmp_path: Path, kind: str, name: str, old: str, new: str, problem: str) -> None:
    folder = Path(shutil.copytree(models / kind, tmp_path / kind))
    text = (folder / name).read_text()
    (folder / name).write_text(text.replace(old, new))
    (folder / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(WrongUse, match=problem):
        engine(folder).settings.check_inputs("engine", ["models"])
        engine(folder).ask(asked(*pictures(1)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("llava", "model.safetensors"),
        ("llava", "additional_chat_templates/default.jinja"),
        *((kind, "processor_config.json") for kind in ANSWERERS),
    ],
)
def test_every_file_that_decides_answers_is_in_the_digest(models: Path, tmp_path: Path, kind: str, name: str) -> None:
    folder = Path(shutil.copytree(models / kind, tmp_path / kind))
    (folder / "a.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "a.safetensors"}}')
    before = engine(folder).weights()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("{}")
    assert engine(folder).weights() != before
