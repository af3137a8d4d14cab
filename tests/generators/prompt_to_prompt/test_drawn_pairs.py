"""Pairs as the source gives them, drawn by a tiny model of random weights: order, sources, rejections."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.generators.prompt_to_prompt.source import StableDiffusion, broken
from twinset.generators.prompt_to_prompt.vocabulary import EditedCandidate


def planned(generator: StableDiffusion, count: int) -> list[EditedCandidate]:
    return list(islice(generator.plan(), count))


def images(pairs: Sequence[Any]) -> list[Pixels]:
    assert all(isinstance(pair, Pair) for pair in pairs)
    return [frame.pixels for pair in pairs for frame in (pair.image0, pair.image1)]


def test_every_candidate_gets_its_pair_in_order_whatever_else_is_made(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=2)
    candidates = planned(generator, 4)
    pairs = list(generator.make(candidates))
    assert [(pair.key, pair.change) for pair in pairs] == [(planned.key, planned.change) for planned in candidates]
    whole = images(pairs)
    assert all(image.shape == (64, 64, 3) and image.dtype == np.uint8 for image in whole)
    # Tables of samples are read by their first row: the same names and types everywhere.
    shapes = [{name: type(value) for name, value in pair.provenance.items()} for pair in pairs]
    assert all(shape == shapes[0] for shape in shapes) and set(shapes[0].values()) <= {str, int, float}
    unfit = replace(candidates[0], captions1=("A photo of " + "very " * 80 + "red ball.",))
    rejected, *rest = generator.make([unfit, *candidates[1:3]])
    assert isinstance(rejected, Rejected) and rejected.reason == "caption-unfit"
    assert np.array_equal(images(rest), whole[2:6])


def test_pixels_come_from_the_weights(drawing_with: Any, saved: Any) -> None:
    generator, model = drawing_with(), saved("small")
    (pair,) = generator.make(planned(generator, 1))
    source = pair.image0.source
    assert source == pair.image1.source and source.path == "unet/diffusion_pytorch_model.safetensors"
    assert source.size == (model / source.path).stat().st_size
    assert {file.path.partition("/")[0] for file in pair.sources} == {"text_encoder", "vae"}
    assert str(model) not in json.dumps([dict(pair.provenance), [file.path for file in pair.sources]])


def test_either_image_can_be_the_edited_one(drawing_with: Any) -> None:
    generator = drawing_with()
    candidate = next(planned for planned in generator.plan() if planned.plain == 1)
    sides = {"captions0": candidate.captions1, "captions1": candidate.captions0}
    turned = replace(candidate, **sides, plain=0)
    (pair,), (mirrored,) = generator.make([candidate]), generator.make([turned])
    assert np.array_equal(pair.image0.pixels, mirrored.image1.pixels)
    assert np.array_equal(pair.image1.pixels, mirrored.image0.pixels)


def test_numbers_that_overflow_are_rejected(drawing_with: Any) -> None:
    generator = drawing_with(precision="float16")
    assert generator._model.opened.denoiser.dtype == torch.float16
    generator._model.opened.denoiser.conv_out.bias.data.fill_(torch.nan)
    assert [rejected.reason for rejected in generator.make(planned(generator, 2))] == ["not-finite", "not-finite"]


def test_only_the_broken_is_rejected() -> None:
    first, second = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    assert broken(first, second, True) == ""
    assert broken(first, second, False) == "not-finite"
    assert broken(first, first.copy(), True) == "identical"
    even = np.full((8, 8, 3), (200, 10, 30), np.uint8)
    assert broken(first, even, True) == broken(np.zeros_like(first), second, True) == "blank"
    nearly, almost = even.copy(), first.copy()
    nearly[3, 3, 0] += 1
    almost[0, 0, 0] ^= 1
    assert broken(nearly, first, True) == broken(first, almost, True) == ""
