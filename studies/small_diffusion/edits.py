"""Edits of the small world from EQ-SD's vocabulary, and what came of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.edited_pairs.vocabulary import Kind, load_captions, vocabulary_file
from twinset.generators.prompt_to_prompt.alignment import Edit
from twinset.generators.prompt_to_prompt.pipeline import PromptToPromptPipeline
from twinset_demo.small_diffusion.painter import FRAME, SIZE
from twinset_demo.small_diffusion.scenes import Scene, read_caption
from twinset_demo.small_world.backdrop import Mask, eroded, object_mask
from twinset_demo.small_world.checker import judge, read_picture


@dataclass(frozen=True, slots=True)
class WorldEdit:
    """Two captions that differ in one slot. region: the words that name the edited thing, None: all changes.

    changes: the slot, an attribute of ``Scene``. seed: of its noise.
    """

    kind: Kind
    changes: str
    captions: tuple[str, str]
    region: tuple[str, str] | None
    seed: int

    @property
    def scenes(self) -> tuple[Scene, Scene]:
        """What the captions say."""
        return read_caption(self.captions[0]), read_caption(self.captions[1])


#: How prompt-to-prompt is asked to make an edit.
How = Callable[[WorldEdit], Edit]


@dataclass(frozen=True, slots=True)
class Outcome:
    """first, second: all is drawn as the caption says. edited: the second shows the changed attribute, whatever else.

    change: mean absolute difference in grey levels (0..255) of what the edit should have left alone (`kept`).
    """

    first: bool
    second: bool
    edited: bool
    change: float


def draw_edits(kind: Kind, number: int, seed: int) -> list[WorldEdit]:
    """Edits of a kind from the vocabulary of EQ-SD's small model; asking for more keeps the first ones.

    As there, a phrase that one caption lacks is added by the second.
    """
    vocabulary = load_captions(vocabulary_file("small-world"))
    rows = [vocabulary.rows[row] for row in vocabulary.of_kind(kind)]
    rng = np.random.default_rng([seed, *kind.encode()])
    edits = []
    for _ in range(number):
        row = rows[rng.integers(len(rows))]
        chosen = {slot: str(rng.choice(words)) for slot, words in row.words.items()}
        pair = [str(word) for word in rng.choice(row.words[row.changes], 2, replace=False)]
        pair.sort(key=bool)  # stable: only "" moves, to the front
        sides = [{**chosen, row.changes: word} for word in pair]
        captions = (row.caption(sides[0]), row.caption(sides[1]))
        region = None if row.region is None else (sides[0][row.region], sides[1][row.region])
        edits.append(WorldEdit(kind, row.changes, captions, region, int(rng.integers(2**62))))
    return edits


def make(
    pipeline: PromptToPromptPipeline, edits: Sequence[WorldEdit], how: How, *, steps: int, guidance: float, batch: int
) -> NDArray[np.uint8]:
    """(n, 2, 64, 64, 3) pairs."""
    config = pipeline.unet.config
    shape = config.in_channels, config.sample_size, config.sample_size
    made = []
    for start in range(0, len(edits), batch):
        some = edits[start : start + batch]
        noise = torch.stack([torch.randn(shape, generator=torch.Generator().manual_seed(edit.seed)) for edit in some])
        made.append(pipeline([how(edit) for edit in some], noise, steps=steps, guidance=guidance).images)
    return np.concatenate(made)


def outcome(edit: WorldEdit, pair: NDArray[np.uint8]) -> Outcome:
    """What came of an edit: pair (2, 64, 64, 3)."""
    verdicts = [judge(read_picture(picture), scene) for picture, scene in zip(pair, edit.scenes, strict=True)]
    difference = np.abs(pair[0].astype(np.float64) - pair[1]).mean(axis=2)[kept(edit.changes, pair[0], pair[1])]
    return Outcome(
        first=all(verdicts[0].values()),
        second=all(verdicts[1].values()),
        edited=verdicts[1]["shape" if edit.changes == "object" else edit.changes],
        change=float(difference.mean()) if difference.size else math.nan,
    )


def kept(changes: str, first: Pixels, second: Pixels) -> Mask:
    """(64, 64) pixels that an edit should leave alone.

    Objects and colours: all outside of both pictures' objects, widened by 2 pixels. Places and hours: the objects of
    both, without their edges, where the background shines through. Style: all inside the frame.
    """
    if changes in ("object", "colour"):
        return ~(object_mask(first) | object_mask(second))
    if changes == "style":
        inside = np.zeros((SIZE, SIZE), np.bool_)
        inside[FRAME + 1 : -FRAME - 1, FRAME + 1 : -FRAME - 1] = True
        return inside
    return eroded(object_mask(first, dilate=0)) | eroded(object_mask(second, dilate=0))
