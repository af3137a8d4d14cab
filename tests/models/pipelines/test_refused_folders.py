"""Folders of pipelines come from others: what is of another class, or not whole, is refused before work.

Damaged and hostile weights, code, links and addresses: `tests.models.test_policy`.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.models.pipelines.conftest import Opens, Saved
from tests.models.pipelines.tiny_pipelines import ALL, EDITING
from twinset.contracts.errors import WrongUse
from twinset.models.files import ModelMissing
from twinset.models.pipelines.folder import find_pipeline

CODE = "open({!r}, 'w').close()\n"


@pytest.fixture
def copy(saved: Saved, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the folder of a class."""
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / "copy"))


def says(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **settings}))


@pytest.mark.parametrize("name", ALL)
def test_each_class_is_refused_without_a_part_or_with_another(copy: Callable[[str], Path], name: str) -> None:
    at = copy(name)
    found = find_pipeline(str(at), name in EDITING)
    for part, kind in found.parts.items():
        index = (at / "model_index.json").read_text()
        for said, problem in (
            (["own_code", kind], rf"{part} is .*own_code.*; only .*{kind}"),
            (["diffusers", "DiffusionPipeline"], f"{part} is .*DiffusionPipeline.*; only"),
            ("evil", f"{part} is evil; only"),
        ):
            says(at / "model_index.json", **{part: said})
            with pytest.raises(WrongUse, match=problem):
                find_pipeline(str(at), name in EDITING)
        (at / "model_index.json").write_text(index)
        (at / part).rename(at / "elsewhere")
        with pytest.raises(ModelMissing, match=f"lacks .*: put them into .*{part}"):
            find_pipeline(str(at), name in EDITING)
        (at / "elsewhere").rename(at / part)
    assert find_pipeline(str(at), name in EDITING).digest() == found.digest()


def test_a_class_that_is_unknown_or_does_something_else_is_refused(copy: Callable[[str], Path], opens: Opens) -> None:
    at = copy("FluxPipeline")
    for said in ("OwnPipeline", ["pipeline", "OwnPipeline"], None, "DiffusionPipeline"):
        says(at / "model_index.json", _class_name=said)
        with pytest.raises(WrongUse, match=r"model_index.json: _class_name is .*Known are StableDiffusionPipeline"):
            opens(str(at)).weights()
    says(at / "model_index.json", _class_name="FluxKontextPipeline")
    with pytest.raises(WrongUse, match=r"no class of this name draws here.*that edit have an engine of their own"):
        opens(str(at)).weights()
    says(at / "model_index.json", _class_name="FluxPipeline", controlnet=["diffusers", "ControlNetModel"])
    with pytest.raises(WrongUse, match="names the parts controlnet, which FluxPipeline does not have"):
        opens(str(at)).weights()
    (at / "model_index.json").unlink()
    with pytest.raises(ModelMissing, match=r"lacks model_index.json: put it into"):
        opens(str(at)).weights()
    with pytest.raises(ModelMissing, match="neither a folder here nor in the Hugging Face cache"):
        opens("own/flux").weights()


def test_another_architecture_inside_a_part_is_refused(copy: Callable[[str], Path]) -> None:
    at = copy("FluxPipeline")
    for part, key, other in (
        ("transformer", "_class_name", "SD3Transformer2DModel"),
        ("vae", "_class_name", ["evil", "Evil"]),
        ("text_encoder_2", "model_type", "bert"),
    ):
        before = (at / part / "config.json").read_text()
        says(at / part / "config.json", **{key: other})
        with pytest.raises(WrongUse, match=f"{part}/config.json: {key} is .*, but model_index.json says"):
            find_pipeline(str(at), editing=False)
        (at / part / "config.json").write_text(before)


@pytest.mark.parametrize(
    ("part", "settings", "said"),
    [
        ("scheduler", {"num_train_timesteps": 10**9}, "num_train_timesteps must be a whole number"),
        ("scheduler", {"stochastic_sampling": True}, "draws noise without a seed"),
        ("transformer", {"num_layers": 2}, r"the weights lack \d+ tensors"),
        ("transformer", {"num_single_layers": 0}, r"the weights have \d+ tensors"),
        ("tokenizer", {"model_max_length": 10**30}, "model_max_length must be up to 77"),
    ],
)
def test_settings_of_a_part_that_do_not_go_are_refused(
    copy: Callable[[str], Path], opens: Opens, part: str, settings: dict[str, Any], said: str
) -> None:
    at = copy("FluxPipeline")
    file = {"scheduler": "scheduler_config.json", "tokenizer": "tokenizer_config.json"}.get(part, "config.json")
    says(at / part / file, **settings)
    with pytest.raises(WrongUse, match=said):
        assert opens(str(at)).pipeline


def test_code_and_templates_of_the_folder_are_not_run(
    copy: Callable[[str], Path], opens: Opens, tmp_path: Path
) -> None:
    at, marker = copy("ZImagePipeline"), tmp_path / "was_run"
    for place in (at, *(one for one in at.iterdir() if one.is_dir())):
        for name in ("evil", "pipeline", "modeling", "tokenization", "transformer", "vae"):
            (place / f"{name}.py").write_text(CODE.format(str(marker)))
    mapped = {"AutoTokenizer": ["evil.Evil", "evil.Evil"], "AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}
    says(at / "text_encoder/config.json", auto_map=mapped)
    says(at / "tokenizer/tokenizer_config.json", auto_map=mapped, tokenizer_class="Evil")
    for file in (at / "tokenizer").glob("*.jinja"):
        file.write_text("{{ 1 / 0 }}")
    assert opens(str(at)).pipeline._words[0].chat_template.startswith("{% for one in messages %}")
    assert not marker.exists()


def test_parts_of_different_models_are_told_at_once(copy: Callable[[str], Path], opens: Opens, saved: Saved) -> None:
    from tests.models.pipelines.test_drawn import requests

    at = copy("FluxPipeline")
    for part in ("text_encoder", "tokenizer"):
        shutil.rmtree(at / part)
        shutil.copytree(saved("StableDiffusionPipeline") / part, at / part)
    with pytest.raises(WrongUse, match=r"FluxPipeline cannot draw with these parts and settings \(.*mat1 and mat2"):
        list(opens(str(at)).draw(requests("a cat")))


def test_two_sets_of_weights_or_two_schedulers_are_refused(copy: Callable[[str], Path]) -> None:
    at = copy("FluxPipeline")
    index = at / "transformer/diffusion_pytorch_model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "other.safetensors"}}))
    with pytest.raises(WrongUse, match=r"transformer: has .*\.safetensors and .*index\.json, .*; remove one of both"):
        find_pipeline(str(at), False)
    index = index.rename(index.with_name("diffusion_pytorch_model.safetensors.fp16.index.json"))
    with pytest.raises(WrongUse, match=r"fp16\.index\.json: an index of an old form"):
        find_pipeline(str(at), False)
    index.unlink()
    says(at / "scheduler/scheduler_config.json", _class_name="DDIMScheduler")
    with pytest.raises(WrongUse, match=r"scheduler_config.json: _class_name is 'DDIMScheduler', .*write the one"):
        find_pipeline(str(at), False)
