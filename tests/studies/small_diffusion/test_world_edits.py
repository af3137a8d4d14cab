"""Edits of the small world are judged as painted pairs show that they must be."""

from dataclasses import replace

import numpy as np
import pytest

from studies.small_diffusion.edit_report import PLAIN, Summary, change_ratios, choose, ways
from studies.small_diffusion.edits import WorldEdit, draw_edits, outcome
from studies.small_diffusion.report import Share
from twinset.generators.edited_pairs.vocabulary import KINDS
from twinset_demo.small_diffusion.painter import paint


def painted(edit: WorldEdit, same_layout: bool = True) -> np.ndarray:
    """What a perfect model makes of an edit: the same random numbers give the same layout."""
    first, second = edit.scenes
    seeds = (1, 1) if same_layout else (1, 2)
    return np.stack([paint(s, np.random.default_rng(seed)) for s, seed in zip((first, second), seeds, strict=True)])


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_edits_change_one_thing_and_more_of_them_keep_the_first(kind: str) -> None:
    edits = draw_edits(kind, 60, seed=0)
    assert edits[:20] == draw_edits(kind, 20, seed=0) != draw_edits(kind, 20, seed=1)
    assert len({edit.seed for edit in edits}) == 60
    for edit in edits:
        first, second = edit.scenes
        assert first != second and edit.kind == kind
        assert replace(second, **{edit.changes: getattr(first, edit.changes)}) == first
        assert getattr(second, edit.changes), "what one caption lacks is added by the second"


@pytest.mark.parametrize("kind", KINDS)
def test_perfect_edits_succeed_and_keep_the_rest(kind: str) -> None:
    for edit in draw_edits(kind, 12, seed=3):
        seen = outcome(edit, painted(edit))
        assert seen.first and seen.second and seen.edited, edit
        if edit.changes != "style":  # of which the objects' sizes and places are clear of the frame in one only
            assert seen.change < 1.0, edit


@pytest.mark.parametrize("kind", KINDS)
def test_no_edit_at_all_is_no_success_and_keeps_everything(kind: str) -> None:
    for edit in draw_edits(kind, 12, seed=4):
        seen = outcome(edit, painted(edit)[[0, 0]])
        assert (seen.first, seen.second, seen.edited, seen.change) == (True, False, False, 0.0)


def test_another_background_is_a_change_outside_the_object() -> None:
    captions = ("a photo of a red ball on the grass", "a photo of a blue ball on the grass")
    edit = WorldEdit("attribute", "colour", captions, ("ball", "ball"), 0)
    pair = painted(edit)
    pair[1] = paint(replace(edit.scenes[1], place="in the snow"), np.random.default_rng(1))
    seen = outcome(edit, pair)
    assert seen.edited and not seen.second and seen.change > 10


def test_another_colour_is_a_change_of_the_object_that_a_new_place_should_keep() -> None:
    captions = ("a photo of a red ball on the grass", "a photo of a red ball in the snow")
    edit = WorldEdit("scene", "place", captions, None, 0)
    assert outcome(edit, painted(edit)).change < 1
    pair = painted(edit)
    pair[1] = paint(replace(edit.scenes[1], colour="blue"), np.random.default_rng(1))
    assert outcome(edit, pair).change > 50


def test_only_local_blend_is_told_the_region() -> None:
    (edit,) = draw_edits("object", 1, seed=0)
    made = {way: how(edit) for way, how in {**ways(PLAIN), **ways((0.6, 0.4))}.items()}
    assert (made["plain"].cross_replace_steps, made["plain"].self_replace_steps) == (0, 0)
    assert [made[way].blend for way in made] == [None, None, edit.region]
    assert made["with local blend"].cross_replace_steps == made["prompt-to-prompt"].cross_replace_steps == 0.6


def test_intervals_are_wilsons() -> None:
    # Of 10 % in 50: Newcombe 1998's formula worked by hand.
    assert Share(45, 50).interval == pytest.approx((0.7864, 0.9565), abs=1e-4)
    assert Share(500, 500).interval == pytest.approx((0.9924, 1.0), abs=1e-4)
    assert Share.count([True, False, True]) == Share(2, 3)
    assert Share(0, 0).interval == (0.0, 1.0)


def test_the_sweep_chooses_what_keeps_most_among_what_still_succeeds() -> None:
    def summary(right: int, change: float) -> Summary:
        return Summary(Share(right, 100), Share(right, 100), change)

    grid = {
        (0.0, 0.0): {"object": summary(90, 20.0), "scene": summary(92, 40.0)},
        (0.4, 0.2): {"object": summary(88, 8.0), "scene": summary(90, 12.0)},
        (0.6, 0.4): {"object": summary(86, 4.0), "scene": summary(91, 11.0)},
        (1.0, 0.8): {"object": summary(70, 1.0), "scene": summary(92, 2.0)},
    }
    assert choose(grid) == (0.6, 0.4)
    assert change_ratios(grid, (0.4, 0.2)) == {"object": 0.4, "scene": 0.3}
    unseen = {**grid, (0.6, 0.4): {**grid[0.6, 0.4], "scene": summary(91, float("nan"))}}
    assert choose(unseen) == (0.4, 0.2)
