"""The engine: refusals without rendering, bounded tries; slow: the same bytes, minimal pairs, masks."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.kubric_scenes.proof import prove_seen
from twinset.generators.kubric_scenes.scene.composition import Refuted
from twinset.models.image_engine import Drawn, Request
from twinset_demo import kubric_grammar as kubric
from twinset_demo.kubric_grammar import painter
from twinset_demo.kubric_grammar.grammar import read
from twinset_demo.kubric_grammar.painter import KubricPainter
from twinset_demo.kubric_grammar.placement import place
from twinset_demo.kubric_grammar.settings import KubricImages
from twinset_demo.kubric_grammar.workshop import Workshop
from twinset_demo.miniature.scene_captions import CAPTIONS

# Of every second caption of the miniature, positions rounded to a thousandth of a scene unit. When this changes, so do
# the pictures: raise `KubricPainter.version`.
GOLDEN = {2: "719ae9f3a95e0b7d3b626601a994da63"}


def request(caption: str, seed: int = 7, key: str = "k") -> Request:
    return Request(key, caption, f"{caption.rstrip('.')}, a photo in high resolution", seed)


def test_refusals_name_the_reason() -> None:
    engine = KubricImages(kind="kubric").open()
    assert engine.refuses("A red mug behind a blue bowl.") is None
    unread, unshown = engine.refuses("a red dragon"), engine.refuses("a bus on top of a ball")
    assert unread is not None and (unread.reason, "dragon" in unread.detail) == ("not-in-grammar", True)
    assert unshown is not None and unshown.reason == "not-drawable"


def test_refused_captions_become_rejections_in_order() -> None:
    engine = KubricImages(kind="kubric").open()
    made = list(engine.draw([request("a red dragon", key="a"), request("a bus on top of a ball", key="b")]))
    assert [(one.key, one.reason) for one in made if isinstance(one, Rejected)] == [
        ("a", "not-in-grammar"),
        ("b", "not-drawable"),
    ]


def test_tries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def crowded(_scene: object, _workshop: object, _seed: int, attempt: int) -> None:
        tried.append(attempt)
        raise Refuted("no-room", "crowded")

    monkeypatch.setattr(painter, "place", crowded)
    (made,) = KubricPainter(KubricImages(kind="kubric", attempts=3)).draw([request("a red mug")])
    assert made == Rejected("k", "no-room", "crowded (the last of 3 tries)")
    assert tried == [0, 1, 2]


def test_every_reason_is_explained() -> None:
    sources = "".join(path.read_text("utf-8") for path in Path(str(kubric.__file__)).parent.glob("*.py"))
    sources += inspect.getsource(prove_seen)
    named = set(re.findall(r'(?:Refuted|NotDrawable)\(\s*"([a-z-]+)"', sources))
    assert named == KubricImages.reasons.keys()


def test_scenes_do_not_change_without_a_new_version(workshop: Workshop) -> None:
    placements = []
    for caption in sorted(CAPTIONS)[::2]:
        for one in place(read(caption), workshop, 1, 0).things:
            numbers = [one.placement.scale, *one.placement.position, *one.placement.quaternion]
            placements.append([one.placement.asset, *(round(1000 * number) for number in numbers)])
    assert digest(placements) == GOLDEN[KubricPainter.version]


def test_where_it_renders_does_not_decide_what() -> None:
    assert set(KubricImages(kind="kubric").incidental) == {"device", "threads"}


@pytest.fixture(scope="module")
def engine() -> KubricPainter:
    return KubricPainter(KubricImages(kind="kubric", resolution=128, samples=4))


def drawn(engine: KubricPainter, caption: str, seed: int = 7) -> Drawn:
    (made,) = engine.draw([request(caption, seed)])
    assert isinstance(made, Drawn), made
    return made


@pytest.mark.slow
def test_bytes_depend_on_caption_and_seed_alone(engine: KubricPainter) -> None:
    caption = "A red ball on top of a brown table."
    first = drawn(engine, caption)
    drawn(engine, "three green cubes behind a blue car")
    again = drawn(engine, "a red ball on top of a brown table")
    assert np.array_equal(first.pixels, again.pixels)
    assert first.provenance == again.provenance
    assert not np.array_equal(first.pixels, drawn(engine, caption, seed=8).pixels)


@pytest.mark.slow
def test_swapped_colours_change_the_objects_alone(engine: KubricPainter) -> None:
    first = drawn(engine, "a red mug to the left of a blue car")
    swapped = drawn(engine, "a blue mug to the left of a red car")
    assert first.masks is not None and swapped.masks is not None
    assert np.array_equal(first.masks, swapped.masks)
    apart = np.abs(first.pixels.astype(int) - swapped.pixels).max(axis=2)
    assert (apart[first.masks > 0] > 60).mean() > 0.5
    assert (apart[first.masks == 0] > 24).mean() < 0.05


@pytest.mark.slow
def test_the_miniature_is_drawn(engine: KubricPainter) -> None:
    for caption in CAPTIONS:
        made = drawn(engine, caption)
        assert made.masks is not None
        assert made.masks.max() == sum(one.count for one in read(caption).phrases)
