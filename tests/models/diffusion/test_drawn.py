"""Pictures of each class of pipelines: the pipeline's own, and the same in any company."""

import json
import shutil
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.diffusion.conftest import Opens, Saved, in_time, published, write_into
from tests.models.diffusion.tiny_models import unet_xl
from tests.models.diffusion.tiny_pipelines import DRAWING, sd3
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.models.diffusion.classes import classes
from twinset.models.diffusion.settings import DPO, SDXL, DiffusersImages
from twinset.models.image_engine import Drawn, Request

CAT, DOG, RED = "a photo of a cat", "a dog in the winter, eating", "a red circle"
#: Grey levels of 255, on average: batches of other sizes sum in another order, and random networks make much of it. In
#: float64 nothing differs.
ROUNDED = 2


def requests(*prompts: str) -> list[Request]:
    return [Request(f"key-{number}", prompt, prompt, 2**62 + number) for number, prompt in enumerate(prompts)]


def pixels(drawn: Any) -> list[Pixels]:
    made = list(drawn)
    assert all(isinstance(result, Drawn) for result in made), made
    return [result.pixels for result in made]


def test_every_class_that_draws_is_tried() -> None:
    assert {*classes(editing=False)} == {*DRAWING} and len(DRAWING) >= 7


@pytest.mark.parametrize("name", DRAWING)
def test_a_picture_is_the_pipelines_own_for_the_same_noise(opens: Opens, saved: Saved, name: str) -> None:
    asked = requests(CAT, DOG)
    drawn = pixels(opens(name).draw(asked))
    pipeline = published(saved(name), name)
    for request, made in zip(asked, drawn, strict=True):
        noise = torch.Generator("cpu").manual_seed(request.seed)
        options = {"num_inference_steps": 2, "height": 64, "width": 64, "output_type": "np"}
        options |= {"negative_prompt": " "} if name == "QwenImagePipeline" else {}
        (image,) = pipeline(prompt=request.prompt, generator=noise, **options).images
        assert np.array_equal(made, (image * 255).round().astype(np.uint8))
    assert np.std(drawn) > 20 and not np.array_equal(*drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", [in_time(name) for name in DRAWING])
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


def test_captions_that_are_padded_to_the_longest_are_drawn_alone(opens: Opens) -> None:
    for name, expected in (("QwenImagePipeline", [2, 1, 1]), ("FluxPipeline", [3, 1])):
        engine = opens(name, micro_batch=3)
        assert [len(batch) for batch in engine._passes(requests(CAT, CAT, DOG, CAT))] == expected


@pytest.mark.parametrize(
    ("name", "changed", "provenance"),
    [
        ("FluxPipeline", {"guidance": 1.5}, {"guidance": 1.5}),
        ("QwenImagePipeline", {"steps": 3}, {"steps": 3}),
        ("StableDiffusionPipeline", {"scheduler": "euler"}, {"scheduler": "EulerDiscreteScheduler"}),
        ("StableDiffusionPipeline", {"scheduler": "dpm-solver++"}, {"scheduler": "DPMSolverMultistepScheduler"}),
        ("StableDiffusionXLPipeline", {"precision": "bfloat16"}, {"precision": "bfloat16"}),
        ("FluxPipeline", {"output_resolution": 32, "resampling": "box"}, {"resolution": 64, "resampling": "box"}),
    ],
)
def test_settings_reach_the_picture_and_the_sample(
    opens: Opens, name: str, changed: dict[str, Any], provenance: dict[str, Any]
) -> None:
    (usual,), (other,) = opens(name).draw(requests(CAT)), opens(name, **changed).draw(requests(CAT))
    assert usual.pixels.tobytes() != other.pixels.tobytes()
    assert {**usual.provenance, **provenance} == {**other.provenance}
    if "resampling" in changed:
        expected = Image.fromarray(usual.pixels).resize((32, 32), Image.Resampling.BOX)
        assert np.array_equal(other.pixels, expected)


def test_what_was_drawn_with_is_in_the_sample(opens: Opens, saved: Saved) -> None:
    (made,) = opens("FluxPipeline").draw(requests(CAT))
    assert made.provenance["pipeline"] == "FluxPipeline" and made.provenance["model"] == "a folder"
    assert made.provenance["weights"] == opens("FluxPipeline").weights()["model"]
    assert str(saved("FluxPipeline")) not in str(made)
    assert [Path(file.path).parts[0] for file in made.sources] == [
        "transformer",
        "text_encoder",
        "text_encoder_2",
        "vae",
    ]


def test_another_unet_draws_and_is_part_of_the_digest(opens: Opens, saved: Saved, tmp_path: Path) -> None:
    """As Diffusion-DPO's is published: in a folder of its own within its repository."""
    base = shutil.copytree(saved("StableDiffusionXLPipeline"), tmp_path / "base", ignore=lambda *_: ["unet"])
    unet_xl((16, 16, 16), (2, 2, 2), 96, pooled=40).save_pretrained(tmp_path / "dpo/unet")
    engine = opens(str(base), unet=str(tmp_path / "dpo"))
    (made,) = engine.draw(requests(CAT))
    assert made.provenance["unet"] == "a folder" and made.sources[0].path == "unet/diffusion_pytorch_model.safetensors"
    assert engine.weights() == opens(str(base), unet=str(tmp_path / "dpo/unet")).weights()
    assert engine.weights() != opens("StableDiffusionXLPipeline").weights()
    assert engine.pipeline.over("a cat " * 400) and engine.pipeline.side == 1024
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
        ("FluxPipeline", "a cat " * 400, "prompt-too-long", "289 tokens more than the model reads"),
        ("ZImagePipeline", "a cat " * 400, "prompt-too-long", "704 tokens more than the model reads"),
        ("QwenImagePipeline", "a cat <|im_end|>", "special-token", "the prompt holds <|im_end|>"),
        ("FluxPipeline", "a cat </s> a dog", "special-token", "the prompt holds </s>"),
    ],
)
def test_a_prompt_that_is_not_read_as_it_stands_is_rejected(
    opens: Opens, name: str, prompt: str, reason: str, detail: str
) -> None:
    first, rejected, last = opens(name).draw(requests(CAT, prompt, DOG))
    assert rejected == Rejected("key-1", reason, detail)
    assert isinstance(first, Drawn) and isinstance(last, Drawn) and last.key == "key-2"
    if reason == "prompt-too-long":
        assert len(pixels(opens(name, cut=True).draw(requests(prompt)))) == 1


def test_what_is_plainly_broken_is_rejected_and_memory_that_runs_out_is_told(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opens("FluxPipeline", fresh=True)
    last = engine.pipeline.pipeline.vae.decoder.conv_out
    for value, reason in ((-9, "blank"), (torch.nan, "not-finite")):
        last.weight.data.fill_(0)
        last.bias.data.fill_(value)
        assert [result.reason for result in engine.draw(requests(CAT, DOG))] == [reason] * 2

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(engine.pipeline.denoiser, "forward", full)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(engine.draw(requests(CAT)))


def test_no_noise_is_drawn_but_that_of_the_seeds(opens: Opens, saved: Saved, tmp_path: Path) -> None:
    """Also by a sampler that draws some at each step."""
    at = Path(shutil.copytree(saved("StableDiffusionPipeline"), tmp_path / "model"))
    diffusers.EulerAncestralDiscreteScheduler().save_pretrained(at / "scheduler")
    write_into(at / "model_index.json", scheduler=["diffusers", "EulerAncestralDiscreteScheduler"])
    for model in (str(at), "FluxPipeline"):
        engine = opens(model)
        pixels(engine.draw(requests(CAT)))
        state = torch.get_rng_state()
        first, again = (pixels(engine.draw(requests(CAT)))[0] for _ in range(2))
        assert first.tobytes() == again.tobytes() and torch.equal(torch.get_rng_state(), state)


def test_each_caption_is_filled_up_by_its_own_sign(opens: Opens, saved: Saved, tmp_path: Path) -> None:
    """SDXL fills captions up with "!" for its second text encoder, and with the mark of the end for the first."""
    at = Path(shutil.copytree(saved("StableDiffusionXLPipeline"), tmp_path / "model"))
    write_into(at / "tokenizer_2/tokenizer_config.json", pad_token="!")
    words = json.loads((at / "tokenizer_2/tokenizer.json").read_bytes())
    vocabulary, merges = words["model"]["vocab"], {part for merge in words["model"]["merges"] for part in merge}
    vocabulary["!"] = vocabulary.pop(next(word for word in vocabulary if word not in merges and word not in CAT))
    (at / "tokenizer_2/tokenizer.json").write_text(json.dumps(words))
    engine, read = opens(str(at), fresh=True), list[list[int]]()
    parts = engine.pipeline.pipeline
    for encoder in (parts.text_encoder, parts.text_encoder_2):
        encoder.register_forward_pre_hook(lambda _, given: read.append(given[0][0].tolist()))
    pixels(engine.draw(requests(CAT)))
    signs = parts.tokenizer.eos_token_id, parts.tokenizer_2.convert_tokens_to_ids("!")
    assert [ids[-1] for ids in read[:2]] == [*signs] and signs[1] != parts.tokenizer_2.eos_token_id
