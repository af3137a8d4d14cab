"""Pictures of each class of pipelines: the pipeline's own, and the same in any company."""

import shutil
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.diffusion.conftest import Opens, Saved, published
from tests.models.diffusion.tiny_models import unet_xl
from tests.models.diffusion.tiny_pipelines import sd3
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.models.diffusion.classes import classes
from twinset.models.diffusion.settings import DPO, SDXL, DiffusersImages
from twinset.models.image_engine import Drawn, Request

CAT, DOG, RED = "a photo of a cat", "a dog in the winter, eating", "a red circle"
ROUNDED = 2  # grey levels of 255, on average: batches of other sizes sum in another order


def requests(*prompts: str) -> list[Request]:
    return [Request(f"key-{number}", prompt, prompt, 2**62 + number) for number, prompt in enumerate(prompts)]


def pixels(drawn: Any) -> list[Pixels]:
    made = list(drawn)
    assert all(isinstance(result, Drawn) for result in made), made
    return [result.pixels for result in made]


@pytest.mark.parametrize("name", classes(editing=False))
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
        ("QwenImagePipeline", {"steps": 3}, {"steps": 3}),
        ("StableDiffusionPipeline", {"scheduler": "dpm-solver++"}, {"scheduler": "DPMSolverMultistepScheduler"}),
        ("StableDiffusionXLPipeline", {"precision": "bfloat16"}, {"precision": "bfloat16"}),
        ("FluxPipeline", {"output_resolution": 32, "resampling": "box"}, {"resolution": 64, "resampling": "box"}),
    ],
)
def test_settings_reach_a_sample(opens: Opens, name: str, changed: dict[str, Any], provenance: dict[str, Any]) -> None:
    (usual,), (made,) = opens(name).draw(requests(CAT)), opens(name, **changed).draw(requests(CAT))
    assert usual.pixels.tobytes() != made.pixels.tobytes()
    assert {**usual.provenance, **provenance} == {**made.provenance}
    if "resampling" in changed:
        assert np.array_equal(made.pixels, Image.fromarray(usual.pixels).resize((32, 32), Image.Resampling.BOX))


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
    keys = DiffusersImages(kind="diffusers", model=SDXL, unet=DPO, licence="MIT").reference.bibtex
    assert "podell2024sdxl" in keys and "wallace2024diffusion" in keys


def test_back_ends_of_attention_and_fused_projections_draw_nearly_the_same(opens: Opens) -> None:
    for name in ("StableDiffusionPipeline", "FluxPipeline"):
        usual, fused = (pixels(opens(name, fused=fused).draw(requests(CAT)))[0] for fused in (False, True))
        assert np.abs(usual.astype(int) - fused).mean() <= ROUNDED
    for name, setting in (("FluxPipeline", {"attention": "flash"}), ("StableDiffusionPipeline", {"attention": "sage"})):
        with pytest.raises(WrongUse, match=r"^engine\.attention: .* not support"):
            assert opens(name, **setting).pipeline
    with pytest.raises(WrongUse, match="leave scheduler out"):
        opens("FluxPipeline", scheduler="ddim")


def test_a_folder_without_what_it_may_lack_is_drawn_with(opens: Opens, tmp_path: Path) -> None:
    diffusers.StableDiffusion3Pipeline(**sd3(tmp_path / "words", with_t5=False)).save_pretrained(tmp_path / "model")
    drawn, rejected = opens(str(tmp_path / "model")).draw(requests(CAT, CAT * 20))
    assert isinstance(drawn, Drawn) and rejected.reason == "prompt-too-long"


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
