"""Pictures of each class of pipelines: the pipeline's own, and the same in any company.

Folders of pipelines come from others: what is of another class, or not whole, is refused before work. Damaged and
hostile weights, code, links and addresses: `tests.models.test_policy`.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.diffusion.conftest import Opens, Saved, published, write_into
from tests.models.diffusion.tiny_models import unet_xl
from tests.models.diffusion.tiny_pipelines import ALL, EDITING
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.models.diffusion.classes import classes
from twinset.models.diffusion.folder import find_pipeline
from twinset.models.files import ModelMissing
from twinset.models.image_engine import Drawn, Request

CAT, DOG, RED = "a photo of a cat", "a dog in the winter, eating", "a red circle"
ROUNDED = 2  # grey levels of 255, on average: batches of other sizes sum in another order


def with_slow(names: Iterable[str]) -> list[Any]:
    slow = {*EDITING, "StableDiffusionXLPipeline", "Flux2KleinPipeline"}  # the largest two
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in names]


def requests(*prompts: str) -> list[Request]:
    return [Request(f"key-{number}", prompt, prompt, 2**62 + number) for number, prompt in enumerate(prompts)]


def pixels(drawn: Any) -> list[Pixels]:
    made = list(drawn)
    assert all(isinstance(result, Drawn) for result in made), made
    return [result.pixels for result in made]


@pytest.mark.parametrize("name", with_slow(classes(editing=False)))
def test_a_picture_is_the_pipelines_own_for_the_same_noise(opens: Opens, saved: Saved, name: str) -> None:
    asked, engine = requests(CAT, DOG), opens(name)
    state = torch.get_rng_state()
    drawn = pixels(engine.draw(asked))
    assert torch.equal(torch.get_rng_state(), state), "noise was drawn that is of no seed"
    pipeline = published(saved(name), name)
    for request, made in zip(asked, drawn, strict=True):
        noise = torch.Generator("cpu").manual_seed(request.seed)
        options = {"num_inference_steps": 2, "height": 64, "width": 64, "output_type": "np"}
        options |= {"negative_prompt": " "} if name == "QwenImagePipeline" else {}
        (image,) = pipeline(prompt=request.prompt, generator=noise, **options).images
        assert np.array_equal(made, (image * 255).round().astype(np.uint8))
    assert np.std(drawn) > 20 and not np.array_equal(*drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", classes(editing=False))
def test_a_picture_does_not_hang_on_the_others(opens: Opens, name: str) -> None:
    """Bit for bit while passes have one size; nearly so in passes of one."""
    engine = opens(name, micro_batch=4)
    asked = requests(CAT, CAT, DOG, RED, DOG)
    drawn = pixels(engine.draw(asked))
    assert drawn[2].tobytes() != drawn[4].tobytes()
    for batch in (asked[1:], asked[3:], asked[::-1]):
        for request, again in zip(batch, pixels(engine.draw(batch)), strict=True):
            assert again.tobytes() == drawn[asked.index(request)].tobytes()
    for alone, made in zip(pixels(engine.with_micro_batch(1).draw(asked)), drawn, strict=True):
        assert np.abs(alone.astype(int) - made).mean() <= ROUNDED


@pytest.mark.parametrize(
    ("name", "changed", "provenance"),
    [
        ("FluxPipeline", {"guidance": 1.5}, {"guidance": 1.5}),
        ("StableDiffusionPipeline", {"scheduler": "dpm-solver++"}, {"scheduler": "DPMSolverMultistepScheduler"}),
        ("FluxPipeline", {"precision": "bfloat16"}, {"precision": "bfloat16"}),
        ("FluxPipeline", {"output_resolution": 32, "resampling": "box"}, {"resolution": 64, "resampling": "box"}),
    ],
)
def test_settings_reach_a_sample(opens: Opens, name: str, changed: dict[str, Any], provenance: dict[str, Any]) -> None:
    (usual,), (made,) = opens(name).draw(requests(CAT)), opens(name, **changed).draw(requests(CAT))
    assert usual.pixels.tobytes() != made.pixels.tobytes()
    assert {**usual.provenance, **provenance} == {**made.provenance}
    if "resampling" in changed:
        assert np.array_equal(made.pixels, Image.fromarray(usual.pixels).resize((32, 32), Image.Resampling.BOX))


@pytest.mark.slow
def test_another_unet_draws_and_is_named_in_the_sample(opens: Opens, saved: Saved, tmp_path: Path) -> None:
    """As Diffusion-DPO's is published: in a folder of its own within its repository."""
    base = shutil.copytree(saved("StableDiffusionXLPipeline"), tmp_path / "base", ignore=lambda *_: ["unet"])
    unet_xl((16, 16, 16), (2, 2, 2), 96, pooled=40).save_pretrained(tmp_path / "dpo/unet")
    engine = opens(str(base), unet=str(tmp_path / "dpo"))
    (made,) = engine.draw(requests(CAT))
    assert (made.provenance["model"], made.provenance["unet"]) == ("a folder", "a folder")
    assert str(tmp_path) not in str((made.provenance, made.sources))
    assert [file.path.partition("/")[0] for file in made.sources] == ["unet", "text_encoder", "text_encoder_2", "vae"]
    assert made.provenance["weights"] == opens(str(base), unet=str(tmp_path / "dpo/unet")).weights()["model"]
    assert engine.weights() != opens("StableDiffusionXLPipeline").weights()


def test_back_ends_of_attention_and_fused_projections_draw_nearly_the_same(opens: Opens) -> None:
    for name in ("StableDiffusionPipeline", "FluxPipeline"):
        usual, fused = (pixels(opens(name, fused=fused).draw(requests(CAT)))[0] for fused in (False, True))
        assert np.abs(usual.astype(int) - fused).mean() <= ROUNDED
    with pytest.raises(WrongUse, match=r"^engine\.attention: .* not support"):
        assert opens("FluxPipeline", attention="flash").pipeline


@pytest.mark.parametrize(
    ("name", "prompt", "reason", "detail"),
    [
        ("StableDiffusionPipeline", "a cat " * 400, "prompt-too-long", "725 tokens more than the model reads"),
        ("ZImagePipeline", "a cat " * 400, "prompt-too-long", "704 tokens more than the model reads"),
        ("QwenImagePipeline", "a cat <|im_end|>", "special-token", "the prompt holds <|im_end|>"),
        ("FluxPipeline", "a cat </s> a dog", "special-token", "the prompt holds </s>"),
    ],
)
def test_a_prompt_that_is_cut_is_rejected(opens: Opens, name: str, prompt: str, reason: str, detail: str) -> None:
    first, rejected, last = opens(name).draw(requests(CAT, prompt, DOG))
    assert rejected == Rejected("key-1", reason, detail)
    assert isinstance(first, Drawn) and isinstance(last, Drawn) and last.key == "key-2"
    if reason == "prompt-too-long":
        assert len(pixels(opens(name, cut=True).draw(requests(prompt)))) == 1


def test_what_is_plainly_broken_is_rejected(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opens("FluxPipeline", fresh=True)
    last = engine.pipeline.pipeline.vae.decoder.conv_out
    for value, reason in ((-9, "blank"), (torch.nan, "not-finite"), (torch.inf, "not-finite")):
        last.weight.data.fill_(0)
        last.bias.data.fill_(value)
        assert [result.reason for result in engine.draw(requests(CAT, DOG))] == [reason] * 2

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(engine.pipeline.denoiser, "forward", full)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(engine.draw(requests(CAT)))


Copy = Callable[[str], Path]
WEIGHTS = "diffusion_pytorch_model.safetensors"


@pytest.fixture
def copy(saved: Saved, tmp_path: Path) -> Copy:
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / "copy"))


@pytest.mark.parametrize("name", with_slow(ALL))
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
        (f"transformer/{WEIGHTS}.index.json", '{"weight_map": {"a": "b.safetensors"}}', "remove one of both"),
        ("model_index.json", {"_class_name": ["pipeline", "OwnPipeline"]}, "_class_name is .*Known are StableDiff"),
        ("model_index.json", {"_class_name": "FluxKontextPipeline"}, "draws here.*that edit have an engine"),
        ("transformer/config.json", {"_class_name": "SD3Transformer2DModel"}, "_class_name is .* must be Flux"),
        ("text_encoder_2/config.json", {"model_type": "bert"}, "model_type is 'bert', and must be t5"),
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


def test_a_template_of_the_folder_is_not_run(copy: Copy, opens: Opens) -> None:
    at = copy("ZImagePipeline")
    (template,) = (at / "tokenizer").glob("*.jinja")
    template.write_text("{{ 1 / 0 }}")
    assert isinstance(next(opens(str(at)).draw(requests("a cat"))), Drawn)
