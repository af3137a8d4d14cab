"""The editor ``simple``: it recolours what has the caption's colour, removes, and refuses the rest."""

import numpy as np
import pytest

from twinset.contracts.kinds.samples import Rejected
from twinset.models.image_editor import Edit
from twinset.models.image_engine import Drawn
from twinset_demo.simple_edits.editor import SimpleEditor


def edited(colour: tuple[int, int, int], caption: str, wanted: str, phrase: str) -> Drawn | Rejected:
    pixels = np.full((160, 180, 3), 120, np.uint8)
    pixels[20:40, 20:40] = colour
    mask = np.zeros((160, 180), np.bool_)
    mask[18:42, 18:42] = True
    (made,) = SimpleEditor().edit([Edit("a", pixels, mask, caption, wanted, phrase, "do it", 0)])
    if isinstance(made, Drawn):
        assert np.array_equal(made.pixels[~mask], pixels[~mask]), "nothing outside of the mask changes"
    return made


def test_it_recolours_with_the_lightness_kept() -> None:
    made = edited((190, 40, 40), "A red box.", "A green box.", "a green box")
    assert isinstance(made, Drawn)
    red, green, blue = made.pixels[30, 30].astype(int)
    assert green > red + 40 and green > blue + 40
    assert made.pixels[19, 19].tolist() == [120, 120, 120], "grey stays grey"


def test_it_removes() -> None:
    made = edited((190, 40, 40), "A red box.", "No red box.", "")
    assert isinstance(made, Drawn) and abs(made.pixels.astype(int) - 120).max() < 5


def test_a_thick_hole_is_refused() -> None:
    whole = Edit("a", np.zeros((60, 80, 3), np.uint8), np.ones((60, 80), np.bool_), "A box.", "No box.", "", "do it", 0)
    (made,) = SimpleEditor().edit([whole])
    assert isinstance(made, Rejected) and made.reason == "hole-too-thick"


@pytest.mark.parametrize(
    ("colour", "caption", "wanted", "phrase", "reason"),
    [
        ((190, 40, 40), "A box.", "A ball.", "a ball", "cannot-paint"),
        ((250, 250, 250), "A white box.", "A red box.", "a red box", "cannot-paint"),
        ((90, 90, 95), "A blue box.", "A red box.", "a red box", "no-colour"),
        ((30, 30, 190), "A red box.", "A green box.", "a green box", "no-colour"),
        ((90, 10, 10), "A red box.", "A yellow box.", "a yellow box", "wrong-lightness"),
    ],
)
def test_it_refuses(colour: tuple[int, int, int], caption: str, wanted: str, phrase: str, reason: str) -> None:
    made = edited(colour, caption, wanted, phrase)
    assert isinstance(made, Rejected) and made.reason == reason
