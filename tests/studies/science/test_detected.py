from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from studies.science.detected import CHANCE, detect, read_detected
from twinset.evaluation.blind_probes.detectors import Detector, Detectors
from twinset.evaluation.examples import Matching, Picture

ALONE = Detector(np.ones(1, np.float32), 0.0)  # above 0: the second half


def made(count: int) -> Any:
    """Pairs of two kinds in turn, two of them in each group."""

    def examples() -> Iterator[Matching]:
        for n in range(count):
            images = (Picture(f"{n}a", bytes), Picture(f"{n}b", bytes))
            names: dict[str, str] = {"key": f"{n}", "group": f"{n // 2}", "category": ("odd", "even")[n % 2 == 0]}
            yield Matching(subset="made", images=images, captions=(f"{n}", f"not {n}"), **names)

    return SimpleNamespace(name="made", title="Made", examples=examples)


def test_halves_that_are_told_right_are_counted_by_kind(tmp_path: Path) -> None:
    # Both captions of the even ones are told right; of images all but the first halves of the odd ones.
    even = np.arange(8) % 2 == 0
    texts, images = np.full((8, 2, 1), 1.0, np.float32), np.full((8, 2, 1), 1.0, np.float32)
    texts[even, 0], images[even, 0] = -1, -1
    found = detect(made(8), Detectors(ALONE, ALONE, {}), lambda pairs: (texts, images))
    figures = {name: one.percent for name, one in found.figures.items()}
    assert figures == pytest.approx({"text": 75, "image": 75, "i2t": 50, "t2i": 50, "group": 50})
    by_kind = {kind: {name: one.percent for name, one in some.items()} for kind, some in found.kinds.items()}
    assert by_kind["even"] == pytest.approx(dict.fromkeys(CHANCE, 100))
    assert by_kind["odd"] == pytest.approx({"text": 50, "image": 50, "i2t": 0, "t2i": 0, "group": 0})
    # Each group has one of both kinds: resampling groups changes nothing.
    assert found.figures["text"].low == pytest.approx(75) == found.figures["text"].high
    found.write(tmp_path / "found.json")
    assert read_detected(tmp_path / "found.json") == found


def test_detectors_that_toss_coins_come_to_chance() -> None:
    rng = np.random.default_rng(0)
    texts, images = (rng.normal(size=(3_000, 2, 1)).astype(np.float32) for _ in range(2))
    found = detect(made(3_000), Detectors(ALONE, ALONE, {}), lambda pairs: (texts, images))
    for name, chance in CHANCE.items():
        told = found.figures[name]
        assert told.percent == pytest.approx(chance, abs=2) and told.low < told.percent < told.high


def test_pairs_without_a_whole_image_are_left_out_and_captions_alone_are_enough() -> None:
    texts, images = np.full((4, 2, 1), 1.0, np.float32), np.full((4, 2, 1), 1.0, np.float32)
    images[1] = np.nan
    found = detect(made(4), Detectors(ALONE, ALONE, {}), lambda pairs: (texts, images))
    assert found.pairs == 3 and {*found.figures} == {*CHANCE}
    alone = detect(made(4), Detectors(ALONE, None, {}), lambda pairs: (texts, None))
    assert alone.pairs == 4 and {*alone.figures} == {"text"} and alone.cells()[1:] == ["", "", "", ""]
