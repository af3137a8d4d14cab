"""Pairs as the source gives them, drawn by a tiny model of random weights: what is measured, flagged and rejected."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.generators.prompt_to_prompt.tiny_models import save_stable_diffusion
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.generators.prompt_to_prompt import attention, pipeline
from twinset.generators.prompt_to_prompt.source import NO_SIMILARITY, StableDiffusion, broken, similarity
from twinset.generators.prompt_to_prompt.vocabulary import EditedCandidate
from twinset.shards.contracts import Context


def planned(generator: StableDiffusion, count: int) -> list[EditedCandidate]:
    return list(islice(generator.plan(), count))


def images(made: Sequence[Any]) -> list[Pixels]:
    assert all(isinstance(one, Pair) for one in made)
    return [frame.pixels for one in made for frame in (one.image0, one.image1)]


def test_every_candidate_gets_its_pair_in_order(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=2, blend=True)
    candidates = planned(generator, 5)
    made = list(generator.make(candidates))
    assert [one.key for one in made] == [one.key for one in candidates]
    assert all(image.shape == (64, 64, 3) and image.dtype == np.uint8 for image in images(made))
    assert [one.change for one in made] == [one.change for one in candidates] and len({one.group for one in made}) == 5
    # Tables of samples are read by their first row: the same names and types everywhere.
    shapes = [{name: type(value) for name, value in one.provenance.items()} for one in made]
    assert all(shape == shapes[0] for shape in shapes) and set(shapes[0].values()) <= {str, int, float}
    assert all(one.scores.keys() == {"region", "similarity_inside", "similarity_outside"} for one in made)
    assert all(0 < one.scores["region"] <= 1 and 0 <= one.scores["similarity_inside"] <= 1 for one in made)
    whole = [one for one in candidates if not one.region0]
    assert whole and all(made[candidates.index(one)].scores["region"] == 1 for one in whole)
    # Where the whole picture changes by design there is nothing to look at.
    assert all(made[candidates.index(one)].scores["similarity_outside"] == -1 for one in whole)
    assert not any(made[candidates.index(one)].flags for one in whole)


def test_an_edit_with_attention_everywhere_is_flagged(drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "THRESHOLD", -1.0)
    generator = drawing_with(micro_batch=4, blend=True)
    candidates = planned(generator, 4)
    made = list(generator.make(candidates))
    assert [one.flags for one in made] == [("region-everywhere",) if one.region0 else () for one in candidates]
    assert any(one.flags for one in made) and all(one.scores["similarity_outside"] == -1 for one in made)
    canonical_json([one.provenance for one in made])


def test_pixels_come_from_the_weights(drawing_with: Any, saved: Any) -> None:
    generator, tiny_model = drawing_with(), saved("small")
    (pair,) = generator.make(planned(generator, 1))
    source = pair.image0.source
    assert source == pair.image1.source and source.path == "unet/diffusion_pytorch_model.safetensors"
    assert source.size == (tiny_model / source.path).stat().st_size
    assert {one.path.partition("/")[0] for one in pair.sources} == {"text_encoder", "vae"}
    assert str(tiny_model) not in json.dumps([dict(pair.provenance), [one.path for one in pair.sources]])


def test_the_same_bytes_every_time_and_others_with_another_seed(drawing_with: Any) -> None:
    candidates = planned(drawing_with(), 4)
    first, second = (images(list(drawing_with().make(candidates))) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    other = drawing_with().open(Context("eq-sd", seed=1))
    assert not any(
        np.array_equal(one, two) for one, two in zip(images(list(other.make(candidates))), first, strict=True)
    )


def test_a_pair_hardly_depends_on_the_micro_batch(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=4)
    candidates = planned(generator, 4)
    whole, single = (images(list(one.make(candidates))) for one in (generator, generator.with_micro_batch(1)))
    assert generator.batch_size() == 4
    apart = [np.abs(one.astype(int) - other).max() for one, other in zip(whole, single, strict=True)]
    assert max(apart) <= 2


def test_a_pair_does_not_depend_on_how_many_others_are_made(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=4, blend=True)
    candidates = planned(generator, 4)
    whole = images(list(generator.make(candidates)))
    fewer = images(list(generator.make(candidates[:3])))
    assert all(np.array_equal(one, other) for one, other in zip(fewer, whole[:6], strict=True))
    unfit = replace(candidates[0], captions1=("A photo of " + "very " * 80 + "red ball.",))
    _, *rest = generator.make([unfit, *candidates[1:]])
    assert all(np.array_equal(one, other) for one, other in zip(images(rest), whole[2:], strict=True))


def test_similarity_is_of_a_region_with_and_without_local_blend(
    drawing_with: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "THRESHOLD", 0.99)  # random weights attend to all places nearly alike
    candidates = [one for one in planned(drawing_with(), 8) if one.region0]
    for blend in (False, True):
        made = list(drawing_with(micro_batch=4, blend=blend).make(candidates))
        assert all(0 < one.scores["region"] < 1 and one.scores["similarity_inside"] < 1 for one in made)
        assert any(one.scores["similarity_outside"] < 1 for one in made)
        named = {(one.provenance["blend0"], one.provenance["blend1"]) for one in made}
        assert named == ({(one.region0, one.region1) for one in candidates} if blend else {("", "")})


def test_either_image_can_be_the_edited_one(drawing_with: Any) -> None:
    generator = drawing_with(blend=True)
    candidate = next(one for one in generator.plan() if one.plain == 1 and one.region0)
    turned = replace(
        candidate,
        captions0=candidate.captions1,
        captions1=candidate.captions0,
        region0=candidate.region1,
        region1=candidate.region0,
        plain=0,
    )
    (pair,), (mirrored,) = generator.make([candidate]), generator.make([turned])
    assert np.array_equal(pair.image0.pixels, mirrored.image1.pixels)
    assert np.array_equal(pair.image1.pixels, mirrored.image0.pixels)
    assert (pair.provenance["blend0"], pair.provenance["blend1"]) == (candidate.region0, candidate.region1)
    assert pair.scores == mirrored.scores


def test_figure_15_goes_through_the_structure_of_stable_diffusion(drawing_with: Any, tmp_path: Path) -> None:
    settings = {"model": str(save_stable_diffusion(tmp_path)), "vocabulary": "figure-15", "resolution": 64}
    generator = drawing_with(**settings, guidance=7.5, blend=True, micro_batch=3)
    candidates = planned(generator, 3)
    assert {one.change for one in candidates} == {"object", "scene", "attribute"}
    made = list(generator.make(candidates))
    assert all(image.shape == (64, 64, 3) for image in images(made))
    assert {pair.provenance["scheduler"] for pair in made} == {"ddim"}


def test_captions_that_the_model_cannot_read_are_rejected_alone(drawing_with: Any) -> None:
    generator = drawing_with()
    candidates = planned(generator, 3)
    long = ("A photo of " + "very " * 40 + f"red {candidates[1].region1}.",)
    candidates[1] = replace(candidates[1], captions1=long)
    first, rejected, last = list(generator.make(candidates))
    assert isinstance(rejected, Rejected) and rejected.reason == "caption-unfit" and "tokens" in rejected.detail
    assert isinstance(first, Pair) and isinstance(last, Pair)


def test_numbers_that_overflow_are_rejected(drawing_with: Any) -> None:
    generator = drawing_with()
    generator._model.parts.unet.conv_out.bias.data.fill_(torch.nan)
    assert [one.reason for one in generator.make(planned(generator, 2))] == ["not-finite", "not-finite"]


def test_a_gpu_without_memory_is_told_from_other_trouble(drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = drawing_with()

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(pipeline.PromptToPrompt, "__call__", full)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(generator.make(planned(generator, 2)))


def test_a_model_that_does_not_fit_into_memory_is_said(drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "load_model", lambda *_: torch.empty(1 << 50))
    generator = drawing_with()
    with pytest.raises(BuildFailed, match=r"memory runs out while .* of eq-sd is loaded .*; end what else fills it"):
        list(generator.make(planned(generator, 1)))


def test_settings_that_do_not_fit_the_model_or_machine_are_said(drawing_with: Any) -> None:
    generator = drawing_with(resolution=96)
    assert images(list(generator.make(planned(generator, 1))))[0].shape == (96, 96, 3)
    assert drawing_with().runs_on() == "cpu"
    half = drawing_with(precision="float16")
    assert images(list(half.make(planned(half, 1))))[0].any() and half._model.parts.unet.dtype == torch.float16
    if not torch.cuda.is_available():
        with pytest.raises(WrongUse, match="torch finds no CUDA device here; write `device: cpu`"):
            drawing_with(device="gpu").runs_on()


def test_the_weights_are_part_of_what_decides_the_bytes(drawing_with: Any, tmp_path: Any) -> None:
    weights = drawing_with().weights()
    assert weights.keys() == {"model"} and len(weights["model"]) == 32
    with pytest.raises(WrongUse, match="there is no model folder"):
        drawing_with(model=str(tmp_path / "nowhere")).weights()


def test_more_steps_than_the_model_was_trained_with_are_refused(drawing_with: Any, saved: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved("small"), tmp_path / "model"))
    (folder / "scheduler/scheduler_config.json").write_text(json.dumps({"num_train_timesteps": 10}))
    generator = drawing_with(model=str(folder), steps=11)
    with pytest.raises(WrongUse, match=r"eq-sd: source.steps must be at most 10 for .*model"):
        list(generator.make(planned(generator, 1)))


NOISE = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)


def test_only_the_broken_is_rejected() -> None:
    first, second = NOISE
    assert broken(first, second, True) == ""
    assert broken(first, second, False) == "not-finite"
    assert broken(first, first.copy(), True) == "identical"
    even = np.full((8, 8, 3), (200, 10, 30), np.uint8)
    assert broken(first, even, True) == broken(np.zeros_like(first), second, True) == "blank"
    nearly = even.copy()
    nearly[3, 3, 0] += 1
    assert broken(nearly, even + 1, True) == "blank" and broken(nearly, first, True) == ""
    almost = first.copy()
    almost[0, 0, 0] ^= 1
    assert broken(first, almost, True) == ""


def test_similarity_is_measured_within_and_without() -> None:
    black, changed = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 3), np.uint8)
    region = np.zeros((8, 8), np.bool_)
    region[:2] = True
    changed[0] = 255
    changed[7, 0] = (51, 0, 0)
    found = similarity(black, changed, region)
    assert found == {
        "region": 0.25,
        "similarity_inside": 0.5,
        "similarity_outside": pytest.approx(1 - 51 / (48 * 3 * 255)),
    }
    assert similarity(changed, black, region) == found


def test_without_an_outside_it_has_no_score() -> None:
    first, second = NOISE
    found = similarity(first, second, np.ones((8, 8), np.bool_))
    assert (
        found["region"] == 1 and found["similarity_outside"] == NO_SIMILARITY and 0.5 < found["similarity_inside"] < 0.8
    )
