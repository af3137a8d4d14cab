"""The engine in this process, with a tiny Llama of random weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import OutOfMemory
from twinset.models.files import ModelFiles, ModelMissing
from twinset.models.language_models.answers import LENGTH, REFUSED, STOP, Message, Request
from twinset.models.language_models.settings import Transformers, find_language_model
from twinset.models.loading import load_with_tokenizer

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.models.language_models import tiny_model  # noqa: E402
from twinset.models.language_models.local_model import LocalModel, RowSampler  # noqa: E402

SCHEMA: dict[str, Any] = {}
TEXTS = ("a", "a man riding a horse", "x" * 200, "zwei Häuser", "a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.save(tmp_path_factory.mktemp("llama"))


def model(folder: Path, **settings: Any) -> LocalModel:
    chosen = {"max_tokens": 12, "micro_batch": 3, "temperature": 1.0, **settings}
    return LocalModel(Transformers(kind="transformers", model=str(folder), **chosen))


def requests(*seeds: int) -> list[Request]:
    return [Request((Message("user", text),), seed) for text, seed in zip(TEXTS, seeds, strict=True)]


def test_an_answer_does_not_depend_on_what_is_answered_beside_it(folder: Path) -> None:
    asked = requests(1, 2, 3, 4, 5)
    together = model(folder).answers(asked, SCHEMA)
    assert [model(folder, micro_batch=1).answers([one], SCHEMA)[0] for one in asked] == together
    assert model(folder, micro_batch=5).answers(asked[::-1], SCHEMA) == together[::-1]
    assert len({one.text for one in together}) == 5, "seeds and prompts tell answers apart"
    assert together[0].prompt_tokens == 4 and all(0 < one.completion_tokens <= 12 for one in together)


def test_seed_temperature_and_top_p_decide_the_answer(folder: Path) -> None:
    one, other = (model(folder).answers(requests(*seeds), SCHEMA) for seeds in ((1,) * 5, (2,) * 5))
    assert one[0] == one[4] and one[0] != other[0]
    likeliest = model(folder, temperature=0).answers(requests(1, 2, 3, 4, 5), SCHEMA)
    assert likeliest[0] == likeliest[4]
    assert model(folder, top_p=1e-9).answers(requests(1, 2, 3, 4, 5), SCHEMA) == likeliest


def test_tokens_are_sampled_as_often_as_their_chances_say() -> None:
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    scores = torch.log(torch.tensor(chances, dtype=torch.float32)).repeat(4000, 1)
    drawn = RowSampler(range(4000), 1.0, 1.0)(torch.zeros(4000, 0), scores).argmax(-1)
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx(chances, abs=0.03)
    # The nucleus of 0.7 is the first two, in their proportion; a temperature of 0.5 squares chances.
    drawn = RowSampler(range(4000), 1.0, 0.7)(torch.zeros(4000, 0), scores).argmax(-1)
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    drawn = RowSampler(range(4000), 0.5, 1.0)(torch.zeros(4000, 0), scores).argmax(-1)
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx(chances**2 / (chances**2).sum(), abs=0.03)


def test_an_answer_ends_at_its_end_or_is_cut(folder: Path) -> None:
    local = model(folder, max_tokens=60, micro_batch=8)
    end = local.loaded[1].generation_config.eos_token_id
    end += range(0, 1500, 30)  # with random weights the one token would hardly ever come
    found = local.answers(requests(1, 2, 3, 4, 5), SCHEMA)
    assert STOP in {one.finish for one in found} <= {STOP, LENGTH}
    assert all(one.completion_tokens == 60 for one in found if one.finish == LENGTH)
    assert len({one.completion_tokens for one in found}) > 1, "shorter ones are padded, and the padding is not counted"
    assert all("<|" not in one.text for one in found)
    assert {one.finish for one in model(folder, max_tokens=1).answers(requests(1, 2, 3, 4, 5), SCHEMA)} == {LENGTH}


def test_a_prompt_that_the_model_cannot_read_is_refused_alone(tmp_path: Path) -> None:
    short = model(tiny_model.save(tmp_path, length=64))
    found = short.answers(requests(1, 2, 3, 4, 5), SCHEMA)
    assert [one.finish == REFUSED for one in found] == [False, False, True, False, False]
    assert "the model reads 64" in found[2].text


def test_weights_are_those_of_the_files(folder: Path, tmp_path: Path) -> None:
    digest = model(folder).weights()
    copied = tiny_model.save(tmp_path)
    assert model(copied).weights() == digest
    (copied / "README.md").write_text("hello")
    assert model(copied).weights() == digest
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
    assert model(copied).weights() != digest


def test_memory_that_runs_out_is_told_and_half_the_batch_shares_the_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = model(folder, micro_batch=4)
    half = whole.with_micro_batch(2)
    assert half.micro_batch == 2 and half.loaded is whole.loaded and whole.micro_batch == 4

    def full(*arguments: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(whole, "_write", full)
    with pytest.raises(OutOfMemory):
        whole.answers(requests(1, 2, 3, 4, 5), SCHEMA)


def test_weights_that_lack_tensors_are_refused(tmp_path: Path) -> None:
    path = tiny_model.save(tmp_path) / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(WrongUse, match=r"lack 1 tensors .*layers\.1\.mlp\.up_proj\.weight.*would be random"):
        model(tmp_path).answers(requests(1, 2, 3, 4, 5), SCHEMA)


def test_an_index_names_only_what_lies_beside_it(tmp_path: Path) -> None:
    folder = tiny_model.save(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert {index.name, "model-1.safetensors"} <= {path.name for path in find_language_model(str(folder)).paths}
    for piece, problem in (
        ("../other.safetensors", "leaves the folder"),
        ("model-2.safetensors", "lacks model-2"),
    ):
        index.write_text(json.dumps({"weight_map": {"a": piece}}))
        with pytest.raises(WrongUse, match=problem):
            find_language_model(str(folder))


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"pytorch_model.bin": b"", "config.json": b"{}"},
            "lacks tokenizer.json, model.safetensors: .* one .gguf",
        ),
        ({"model.safetensors": b"", "tokenizer.json": b"{}"}, "lacks config.json"),
        ({"model.safetensors": b"", "config.json": b"{}"}, "lacks tokenizer.json"),
        ({"a.gguf": b"", "b.gguf": b""}, "has 2 GGUF files; name one of them, such as .*a.gguf"),
    ],
)
def test_a_folder_without_a_model_is_named(tmp_path: Path, files: dict[str, bytes], problem: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelMissing, match=problem):
        find_language_model(str(tmp_path))


def test_broken_weights_and_a_model_without_chats_are_named(tmp_path: Path) -> None:
    mute = tiny_model.save(tmp_path / "mute", template=None)
    with pytest.raises(WrongUse, match="has no chat template; name a model that is tuned"):
        model(mute).answers(requests(1, 2, 3, 4, 5), SCHEMA)
    (mute / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(WrongUse, match=r"mute: cannot be loaded \(.*get its files again"):
        model(mute).answers(requests(1, 2, 3, 4, 5), SCHEMA)
    (tmp_path / "x.gguf").write_bytes(b"no weights")
    with pytest.raises(WrongUse, match=r"x\.gguf: cannot be loaded \("):
        model(tmp_path / "x.gguf").answers(requests(1, 2, 3, 4, 5), SCHEMA)


def test_a_model_with_an_adapter_beside_it_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "adapted"
    shutil.copytree(folder, copy)
    (copy / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere", "peft_type": "LORA"}')
    with pytest.raises(WrongUse, match=r"adapted: holds an adapter .* merge both"):
        find_language_model(str(copy))
    with pytest.raises(WrongUse, match="holds an adapter"):
        load_with_tokenizer("AutoModelForCausalLM", ModelFiles(copy, ()), "float32")
