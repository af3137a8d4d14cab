"""Edited photos are proved on the stored files: only the place has changed; what fails is tried again."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from extras.tests.edited_photos.made_edits import (
    HEIGHT,
    WIDTH,
    Fake,
    Opened,
    became,
    inside,
    made,
    photo,
    shifted,
    source,
)
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.generators.contract import check_source
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.image_editor import Edit


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: one.pixels[:-8], "other-size"),
        (lambda one: np.zeros_like(one.pixels), "blank"),
        (lambda one: one.pixels.copy(), "same-image"),
        (lambda one: np.roll(inside(one), 2, axis=1), "moved"),
        (lambda one: cv2.resize(inside(one)[6:-6, 8:-8], (WIDTH, HEIGHT)), "moved"),
        (lambda one: np.where(np.arange(WIDTH)[:, None] > 300, one.pixels + 30, inside(one)), "changed-outside"),
        (lambda one: np.where(one.mask[..., None], one.pixels + 3, one.pixels), "hardly-changed"),
    ],
)
def test_what_an_editor_must_not_do(opened: Opened, change: Callable[[Edit], Pixels], reason: str) -> None:
    assert became(made(opened, change)) == reason


def test_what_lies_outside_is_taken_from_the_photo_after_the_shift_was_measured(opened: Opened) -> None:
    assert became(made(opened, lambda one: inside(one) + np.uint8(12))) == "changed-outside"
    pasted = made(opened, lambda one: inside(one) + np.uint8(12), paste=True)
    assert isinstance(pasted, Pair) and pasted.scores["difference_outside"] == 0
    assert became(made(opened, shifted, paste=True)) == "moved"


def test_the_proof_is_measured_on_the_files_as_stored(opened: Opened) -> None:
    assert Context("twins").encoding.quality == 95
    generator = opened()
    stored: Pixels = generator._stored(photo())
    assert 0 < np.abs(stored.astype(int) - photo()).mean() < 4


def test_another_seed_is_tried_and_the_last_failed_edit_is_kept_with_the_pair(opened: Opened) -> None:
    seeds: list[int] = []

    def third_is_right(one: Edit) -> Pixels:
        seeds.append(one.seed)
        return [one.pixels, shifted(one), inside(one)][len(seeds) - 1]

    pair = made(opened, third_is_right, tries=4)
    assert isinstance(pair, Pair) and len(set(seeds)) == 3 and pair.provenance["seed"] == seeds[2]
    failed: Any = pair.provenance["failed"]
    assert (failed["reason"], failed["seed"]) == ("moved", seeds[1])
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(failed["image"]))))
    assert np.abs(shown.astype(int) - np.roll(pair.image1.pixels, 2, axis=0)).mean() < 5
    # The first try is that of a stage with one.
    seeds.clear()
    assert became(made(opened, third_is_right)) == "same-image"
    alone, _ = seeds[0], seeds.clear()
    at_once = made(opened, lambda one: seeds.append(one.seed) or inside(one), tries=2)  # type: ignore[func-returns-value]
    assert isinstance(at_once, Pair) and seeds == [alone]
    assert at_once.provenance["failed"] == {"reason": "", "seed": 0, "image": ""}
    assert "failed" not in made(opened, inside).provenance  # type: ignore[union-attr]


def test_what_no_try_proves_is_rejected_once_and_what_the_editor_refuses_is_not_tried_again(
    folder: Path, context: Context, opened: Opened
) -> None:
    seeds: list[int] = []
    result = made(opened, lambda one: seeds.append(one.seed) or shifted(one), tries=3)  # type: ignore[func-returns-value]
    assert became(result) == "moved" and len(set(seeds)) == 3

    check_source(source(folder, tries=3), context)
    generator = opened(tries=3)
    planned, plain = list(generator.plan()), opened()
    asked: list[str] = []
    edit = generator.engine.edit
    generator.engine.edit = lambda edits: asked.extend(one.key for one in edits) or edit(edits)
    kept, wanted = list(generator.make(planned)), list(plain.make(planned))
    assert [type(one) for one in kept] == [type(one) for one in wanted] and len(asked) == len({*asked}) == 3
    assert [one.reason for one in kept if isinstance(one, Rejected)] == ["cannot-paint", "bad-mask"]

    generator.engine = Fake(lambda one: inside(one) if one.seed % 2 else shifted(one))
    alone, together = [result for one in planned for result in generator.make([one])], list(generator.make(planned))
    assert isinstance(alone[0], Pair)
    for one, other in zip(alone, together, strict=True):
        assert (one.key, became(one)) == (other.key, became(other))
        assert isinstance(one, Rejected) or one.provenance == other.provenance
