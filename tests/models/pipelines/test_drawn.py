"""Pictures of each class of pipelines: the pipeline's own, and the same in any company.

SDXL fills captions up with "!" for its second text encoder, and with the mark of the end for the first.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.models.pipelines.conftest import Opens, Saved, in_time, published
from tests.models.pipelines.test_refused_folders import says
from tests.models.pipelines.tiny_pipelines import DRAWING
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.models.diffusion.models import load_parts
from twinset.models.diffusion.text import encode
from twinset.models.image_engine import Drawn, Request
from twinset.models.pipelines.classes import classes
from twinset.models.pipelines.opening import OpenPipeline
from twinset.models.pipelines.settings import DiffusersImages

CAT, DOG, RED = "a photo of a cat", "a dog in the winter, eating", "a red circle"
#: Grey levels of 255, on average: batches of other sizes sum in another order, and random networks make much of it. In
#: float64 nothing differs.
ROUNDED = 2
#: What a class is given besides its defaults, to draw captions as they stand.
OWN: dict[str, dict[str, Any]] = {
    "SanaPipeline": {"use_resolution_binning": False, "clean_caption": False},
    "PixArtAlphaPipeline": {"use_resolution_binning": False, "clean_caption": False},
    "PixArtSigmaPipeline": {"use_resolution_binning": False, "clean_caption": False},
    "QwenImagePipeline": {"negative_prompt": " "},
}


def requests(*prompts: str) -> list[Request]:
    return [Request(f"key-{number}", prompt, prompt, 2**62 + number) for number, prompt in enumerate(prompts)]


def pixels(drawn: Any) -> list[Pixels]:
    made = list(drawn)
    assert all(isinstance(one, Drawn) for one in made), made
    return [one.pixels for one in made]


def apart(ones: list[Pixels], others: list[Pixels]) -> float:
    return max(float(np.abs(one.astype(int) - other).mean()) for one, other in zip(ones, others, strict=True))


def test_every_class_that_draws_is_tried() -> None:
    assert {*classes(editing=False)} == {*DRAWING} and len(DRAWING) >= 10


@pytest.mark.parametrize("name", DRAWING)
def test_a_picture_is_the_pipelines_own_for_the_same_noise(opens: Opens, saved: Saved, name: str) -> None:
    asked = requests(CAT, DOG)
    drawn = pixels(opens(name).draw(asked))
    pipeline = published(saved(name), name)
    for one, made in zip(asked, drawn, strict=True):
        noise = torch.Generator("cpu").manual_seed(one.seed)
        options = {"num_inference_steps": 2, "height": 64, "width": 64, "output_type": "np", **OWN.get(name, {})}
        (image,) = pipeline(prompt=one.prompt, generator=noise, **options).images
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
    for some in (asked[1:], asked[3:], asked[::-1]):
        again = dict(zip(some, pixels(engine.draw(some)), strict=True))
        assert all(again[one].tobytes() == drawn[asked.index(one)].tobytes() for one in some)
    assert apart(pixels(engine.with_micro_batch(1).draw(asked)), drawn) <= ROUNDED and engine.micro_batch == 4


def test_captions_that_are_padded_to_the_longest_are_drawn_alone(opens: Opens) -> None:
    for name, expected in (("QwenImagePipeline", [2, 1, 1]), ("FluxPipeline", [3, 1])):
        engine = opens(name, micro_batch=3)
        assert [len(one) for one in engine._passes(requests(CAT, CAT, DOG, CAT))] == expected


def test_guidance_and_steps_are_those_of_the_settings_and_reach_the_picture(opens: Opens) -> None:
    for name in ("FluxPipeline", "QwenImagePipeline", "SanaPipeline"):
        (usual,) = opens(name).draw(requests(CAT))
        (other,) = opens(name, guidance=1.5).draw(requests(CAT))
        (longer,) = opens(name, steps=3).draw(requests(CAT))
        assert (other.provenance["guidance"], longer.provenance["steps"]) == (1.5, 3)
        assert len({one.pixels.tobytes() for one in (usual, other, longer)}) == 3


def test_what_was_drawn_with_is_in_the_sample(opens: Opens, saved: Saved) -> None:
    engine = opens("FluxPipeline", output_resolution=32, resampling="box")
    (made,) = engine.draw(requests(CAT))
    assert made.pixels.shape == (32, 32, 3) and made.provenance["resampling"] == "box"
    assert made.provenance["pipeline"] == "FluxPipeline" and made.provenance["model"] == "a folder"
    assert made.provenance["weights"] == engine.weights()["model"] and str(saved("FluxPipeline")) not in str(made)
    assert [Path(one.path).parts[0] for one in made.sources] == ["transformer", "text_encoder", "text_encoder_2", "vae"]


def test_a_folder_without_what_it_may_lack_is_drawn_with(opens: Opens, tmp_path: Path) -> None:
    import diffusers

    from tests.models.pipelines.tiny_pipelines import sd3

    parts = sd3(tmp_path / "words", with_t5=False)
    diffusers.StableDiffusion3Pipeline(**parts).save_pretrained(tmp_path / "model")
    engine = opens(str(tmp_path / "model"))
    assert len(pixels(engine.draw(requests(CAT)))) == 1
    assert [one.reason for one in engine.draw(requests(CAT * 20)) if isinstance(one, Rejected)] == ["prompt-too-long"]


def test_a_prompt_that_is_too_long_is_rejected_or_cut(opens: Opens) -> None:
    for name, most in (("StableDiffusionPipeline", 77), ("FluxPipeline", 512), ("ZImagePipeline", 512 - 16)):
        long = "a cat " * 400
        first, rejected = opens(name).draw(requests(CAT, long))
        assert isinstance(first, Drawn) and isinstance(rejected, Rejected) and rejected.reason == "prompt-too-long"
        assert rejected.key == "key-1" and int(rejected.detail.split()[0]) >= 800 - most
        assert len(pixels(opens(name, cut=True).draw(requests(long)))) == 1


def test_a_prompt_that_holds_a_mark_of_the_model_is_rejected(opens: Opens) -> None:
    for name, mark in (("QwenImagePipeline", "<|im_end|>"), ("FluxPipeline", "</s>")):
        (made,) = opens(name).draw(requests(f"a cat {mark} a dog"))
        assert made == Rejected("key-0", "special-token", f"the prompt holds {mark}")


def test_what_is_plainly_broken_is_rejected(opens: Opens) -> None:
    engine = opens("FluxPipeline", fresh=True)
    engine.pipeline._pipeline.transformer.proj_out.bias.data.fill_(torch.nan)
    assert [one.reason for one in engine.draw(requests(CAT, DOG))] == ["not-finite"] * 2
    engine = opens("FluxPipeline", fresh=True)
    engine.pipeline._pipeline.vae.decoder.conv_out.weight.data.fill_(0)
    engine.pipeline._pipeline.vae.decoder.conv_out.bias.data.fill_(-9)
    assert [one.reason for one in engine.draw(requests(CAT))] == ["blank"]


def test_memory_that_runs_out_is_told_from_other_trouble(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opens("FluxPipeline", fresh=True)

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(engine.pipeline._pipeline.transformer, "forward", full)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(engine.draw(requests(CAT)))


def test_no_noise_is_drawn_but_that_of_the_seeds(opens: Opens, saved: Saved) -> None:
    """Also of samplers that draw some at each step."""
    for name in ("StableDiffusionPipeline", "LatentConsistencyModelPipeline", "FluxPipeline"):
        engine = opens(name)
        pixels(engine.draw(requests(CAT)))
        state = torch.get_rng_state()
        first, again = (pixels(engine.draw(requests(CAT)))[0] for _ in range(2))
        assert first.tobytes() == again.tobytes() and torch.equal(torch.get_rng_state(), state)


CAPTION = "a photo of a cat"


@pytest.fixture
def folder(saved: Saved, tmp_path: Path) -> Path:
    """SDXL, with its second tokenizer as published: its settings name the sign that captions are filled up with."""
    at = Path(shutil.copytree(saved("StableDiffusionXLPipeline"), tmp_path / "model"))
    says(at / "tokenizer_2/tokenizer_config.json", pad_token="!")
    words = json.loads((at / "tokenizer_2/tokenizer.json").read_bytes())
    vocabulary, merges = words["model"]["vocab"], {part for merge in words["model"]["merges"] for part in merge}
    vocabulary["!"] = vocabulary.pop(next(one for one in vocabulary if one not in merges and one not in CAPTION))
    (at / "tokenizer_2/tokenizer.json").write_text(json.dumps(words))
    return at


def read(folder: Path, engine: str) -> list[tuple[Any, Any]]:
    """Tokenizer and what the text encoder reads of a caption, of both."""
    met: list[Any] = []

    def remember(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        met.append(named["input_ids"] if "input_ids" in named else given[0])

    if engine == "diffusion":
        encoders = load_parts(str(folder), "cpu").encoders
    else:
        given = {"kind": "diffusers", "model": str(folder), "licence": "MIT", "steps": 1, "resolution": 64}
        pipeline = OpenPipeline(DiffusersImages.model_validate(given))
        parts = pipeline._pipeline
        encoders = [(parts.tokenizer, parts.text_encoder), (parts.tokenizer_2, parts.text_encoder_2)]
    for _, encoder in encoders:
        encoder.register_forward_pre_hook(remember, with_kwargs=True)
    if engine == "diffusion":
        encode(encoders, CAPTION)
    else:
        pipeline([CAPTION], [1], height=64, width=64)
    return [(words, ids[0].tolist()) for (words, _), ids in zip(encoders, met, strict=False)]


@pytest.mark.parametrize("engine", ["diffusion", "diffusers"])
def test_each_caption_is_filled_up_by_its_own_sign(folder: Path, engine: str) -> None:
    with torch.inference_mode():
        first, second = read(folder, engine)
    for (words, ids), sign in ((first, first[0].eos_token_id), (second, second[0].convert_tokens_to_ids("!"))):
        written = words(CAPTION).input_ids
        assert ids == [*written, *[sign] * (words.model_max_length - len(written))] and len(written) < len(ids)
    assert second[1][-1] != second[0].eos_token_id
