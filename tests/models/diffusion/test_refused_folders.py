"""Folders of pipelines come from others: what is of another class, or not whole, is refused before work.

Damaged and hostile weights, code, links and addresses: `tests.models.test_policy`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.models.diffusion.conftest import Opens, Saved, write_into
from tests.models.diffusion.test_drawn import requests
from tests.models.diffusion.tiny_pipelines import ALL, EDITING
from twinset.contracts.errors import WrongUse
from twinset.models.diffusion.folder import find_pipeline
from twinset.models.diffusion.settings import DiffusersImages
from twinset.models.files import ModelMissing
from twinset.models.image_engine import Drawn

Copy = Callable[[str], Path]
WEIGHTS = "diffusion_pytorch_model.safetensors"


@pytest.fixture
def copy(saved: Saved, tmp_path: Path) -> Copy:
    """A copy of the folder of a class."""
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / "copy"))


@pytest.mark.parametrize("name", ALL)
def test_each_class_is_refused_without_a_part_or_with_another(copy: Copy, name: str) -> None:
    at = copy(name)
    whole = find_pipeline(str(at), name in EDITING)
    index = (at / "model_index.json").read_text()
    for part, kind in whole.classes.items():
        for named in (["own_code", kind], ["diffusers", "DiffusionPipeline"], "evil"):
            write_into(at / "model_index.json", **{part: named})
            with pytest.raises(WrongUse, match=rf"model_index\.json: {part} is .*; only .* is opened there"):
                find_pipeline(str(at), name in EDITING)
        (at / "model_index.json").write_text(index)
        (at / part).rename(at / "elsewhere")
        with pytest.raises(ModelMissing, match=f"lacks .*: put them into .*{part}"):
            find_pipeline(str(at), name in EDITING)
        (at / "elsewhere").rename(at / part)
    assert find_pipeline(str(at), name in EDITING).digest() == whole.digest()


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("model_index.json", "version https://git-lfs.github.com/spec/v1", "not JSON"),
        (f"transformer/{WEIGHTS}.index.json", '{"weight_map": {"a": "b.safetensors"}}', "remove one of both"),
        ("transformer/diffusion_pytorch_model.safetensors.fp16.index.json", "{}", "an index of an old form"),
        ("model_index.json", {"_class_name": ["pipeline", "OwnPipeline"]}, "_class_name is .*Known are StableDiff"),
        ("model_index.json", {"_class_name": "FluxKontextPipeline"}, "draws here.*that edit have an engine"),
        ("model_index.json", {"controlnet": ["diffusers", "ControlNetModel"]}, "controlnet, which Flux"),
        ("model_index.json", {"vae": None}, "names no vae"),
        ("transformer/config.json", {"_class_name": "SD3Transformer2DModel"}, "_class_name is .* must be Flux"),
        ("vae/config.json", {"_class_name": ["evil", "Evil"]}, "_class_name is .* must be AutoencoderKL"),
        ("text_encoder_2/config.json", {"model_type": "bert"}, "model_type is 'bert', and must be t5"),
        ("scheduler/scheduler_config.json", {"_class_name": "DDIMScheduler"}, "_class_name is 'DDIMScheduler'"),
        ("scheduler/scheduler_config.json", {"num_train_timesteps": 10**9}, "no whole number from 1 to 100,000"),
        ("scheduler/scheduler_config.json", {"stochastic_sampling": True}, "draws noise without a seed"),
        *(("transformer/config.json", {"sample_size": side}, "from 1 to 1,024") for side in (0, 10**9, "64", None)),
        ("tokenizer/tokenizer_config.json", {"model_max_length": 10**30}, "model_max_length must be up to 77"),
    ],
)
def test_a_folder_with_a_file_that_does_not_go_is_refused(
    copy: Copy, opens: Opens, file: str, content: str | dict[str, Any], problem: str
) -> None:
    at = copy("FluxPipeline")
    if isinstance(content, str):
        (at / file).write_text(content)
    else:
        write_into(at / file, **content)
    with pytest.raises(WrongUse, match=rf"{file.split('/')[0]}.*{problem}"):
        opens(str(at))


def test_what_is_not_there_is_named(saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = str(saved("StableDiffusionPipeline"))
    absent = {r"^e\.unet: .*neither a folder": "own/unet", r"^e\.model: the model \. lacks config\.json": "."}
    for problem, unet in absent.items():
        with pytest.raises(WrongUse, match=problem):
            DiffusersImages(kind="diffusers", licence="MIT", model=model, unet=unet).check_inputs("e", ("models",))


def test_a_processor_is_in_the_digest_by_either_of_its_files(copy: Copy) -> None:
    at = copy("QwenImageEditPipeline")
    digest = find_pipeline(str(at), editing=True).digest()
    (at / "processor/processor_config.json").write_text('{"image_processor": {}}')
    assert find_pipeline(str(at), editing=True).digest() != digest


def test_a_template_of_the_folder_is_not_run(copy: Copy, opens: Opens) -> None:
    at = copy("ZImagePipeline")
    (template,) = (at / "tokenizer").glob("*.jinja")
    template.write_text("{{ 1 / 0 }}")
    assert isinstance(next(opens(str(at)).draw(requests("a cat"))), Drawn)


def test_parts_of_different_models_are_told_at_once(copy: Copy, opens: Opens, saved: Saved) -> None:
    at = copy("FluxPipeline")
    for part in ("text_encoder", "tokenizer"):
        shutil.rmtree(at / part)
        shutil.copytree(saved("StableDiffusionPipeline") / part, at / part)
    with pytest.raises(WrongUse, match=r"FluxPipeline cannot draw with these parts and settings \(.*mat1 and mat2"):
        list(opens(str(at)).draw(requests("a cat")))
