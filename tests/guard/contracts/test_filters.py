"""The contract of filters: `twinset.check_filter` of each kind, on samples that it judges differently."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.filters.test_image_filters import frame, noise, pair, plain
from tests.models.diffusion.tiny_models import save_clip
from twinset import check_filter
from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.parts import FILTERS

Samples = Sequence[Any]
ROOT = Path(__file__).resolve().parents[3]
SPOTS = np.asarray(Image.fromarray(noise(0, 0, 256)).resize((400, 320), Image.Resampling.BICUBIC))


def captions(*pairs: tuple[str, str]) -> Samples:
    """Candidates with one caption an image."""
    return [
        CaptionedCandidate(key=f"s-{n}", group="g", captions0=(a,), captions1=(b,)) for n, (a, b) in enumerate(pairs)
    ]


def pairs() -> Samples:
    """Equal images, one whose middle differs, one that has moved, and another picture."""
    middle = SPOTS.copy()
    middle[60:140, 80:200] = 30
    others = (SPOTS, middle, np.roll(SPOTS, 4, axis=0), plain(200, 10, 10, 320, 400))
    return [pair(SPOTS, other, f"p{n}") for n, other in enumerate(others)]


def captioned_pairs() -> Samples:
    said = (("A red circle.",), ("A blue circle.",))
    return [replace(one, captions0=said[0], captions1=said[1]) for one in pairs()]


def faces() -> Samples:
    face = np.asarray(Image.open(ROOT / "demo/twinset_demo/samples/face.jpg").convert("RGB"))
    return [frame("face", face), frame("noise", noise(1, 0, 256))]


#: By kind: settings beside the kind, and samples.
CASES: dict[str, tuple[dict[str, str], Callable[[], Samples]]] = {
    "blank": ({}, lambda: [frame("grey", plain(9, 9, 9)), frame("noise", noise(0, 0, 256))]),
    "directional-similarity": ({"model": "CLIP"}, captioned_pairs),
    "drift": ({}, pairs),
    "equal-captions": ({}, lambda: captions(("A dog.", "a dog"), ("A dog.", "A cat."))),
    "faces": ({}, faces),
    "motion-words": ({}, lambda: captions(("A man looks up.", "A man."), ("A dog.", "A cat."))),
    "near-identical": ({}, pairs),
    "scene-cut": ({}, pairs),
    "true-of-both": ({"model": "CLIP"}, captioned_pairs),
}


@pytest.mark.parametrize("kind", FILTERS.kinds())
def test_a_filter_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    assert kind in CASES, f"filter {kind} has no case: write its settings and samples in CASES"
    given, samples = CASES[kind]
    if given.get("model") == "CLIP":
        given = {"model": str(save_clip(tmp_path / "clip"))}
    check_filter(FILTERS.find(kind).model_validate({"kind": kind, **given}), samples())
