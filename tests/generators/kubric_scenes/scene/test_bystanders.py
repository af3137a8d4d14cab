"""Bystanders are of other kinds than what captions name, whole in both pictures, hide nothing, and are not between."""

from itertools import islice

import numpy as np
import pytest

from twinset.contracts.canonical import generator_for
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.captions.pair_sampling import draw_pairs
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.proof import foresee, measure
from twinset.generators.kubric_scenes.scene.bystanders import add_bystanders, unnamed_objects
from twinset.generators.kubric_scenes.scene.composition import Refuted, compose
from twinset.generators.kubric_scenes.scene.look import Look
from twinset.generators.kubric_scenes.scene.parts import Drawn, NamedAsset
from twinset_demo import PROCEDURAL


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> AssetShelf:
    return AssetShelf(PROCEDURAL / "manifest.json", tmp_path_factory.mktemp("shelf"))


def test_no_bystander_is_what_a_caption_names(shelf: AssetShelf) -> None:
    shoe, toy = NamedAsset("brown shoe", "brown-shoe"), NamedAsset("green turtle toy", "green-turtle-toy")
    names = unnamed_objects(Drawn("attribute", shoe, shoe, toy, "left", "left", 1, 1), shelf)
    vocabulary = load_vocabulary()
    assert len(names) > 10
    assert not any(vocabulary.entry(name).kind == "shoe" or name.endswith(("shoe", " toy")) for name in names)


@pytest.mark.slow
def test_bystanders_are_in_nobodys_way(shelf: AssetShelf) -> None:
    added = 0
    for aspect in ("location", "counting", "attribute"):
        for planned in islice(draw_pairs(aspect, load_vocabulary(), shelf.entries, 5, "test"), 6):
            rng = generator_for(5, "test", f"{aspect}/{planned.index}")
            try:
                scene = compose(planned.drawn, shelf, 1.8, rng, [], 0, Look())
            except Refuted:
                continue
            named = (scene.things0, scene.things1)
            found = add_bystanders(planned.drawn, named, scene.view, Look(), shelf, rng)
            assert len(found) <= Look().bystanders
            added += len(found)
            for things in named:
                alone = measure(things, scene.view, foresee(things, scene.view, 128))
                together = measure(things + found, scene.view, foresee(things + found, scene.view, 128))
                assert [one.pixels for one in together[: len(things)]] == [one.pixels for one in alone]
                for one in together[len(things) :]:
                    assert one.visible > 0.97 and not one.cut and one.pixels > 30
                if planned.drawn.subject is not None:
                    middles = [(one.points.max(axis=0) + one.points.min(axis=0))[:2] / 2 for one in things]
                    for one in found:
                        _not_between(*middles, (one.points.max(axis=0) + one.points.min(axis=0))[:2] / 2)
    assert added >= 8


def _not_between(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> None:  # type: ignore[type-arg]
    away = other - one
    share = float(np.clip((third - one) @ away / max(away @ away, 1e-9), 0, 1))
    assert np.linalg.norm(one + share * away - third) > 0.25
