"""The contract of filters: what it finds, and that a sound filter passes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from twinset import check_filter
from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Score
from twinset.contracts.parts import BrokenContract, Filter, FrameFilter
from twinset.filters.blank import Blank
from twinset.filters.equal_captions import EqualCaptions
from twinset.shards.rows import BadVerdict


def frames() -> list[Frame]:
    rng = np.random.default_rng(0)
    return [
        Frame(f"f{n}", rng.integers(0, 50 + 40 * n, (16, 16, 3), dtype=np.uint8), -1.0, MediaFile(f"{n}.png", 1, "0"))
        for n in range(4)
    ]


class Bright(Filter):
    """Scores brightness, with the faults of a filter."""

    kind: Literal["bright"] = "bright"
    fault: str = ""

    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"dark": "a frame is dark"}

    def open(self) -> Any:
        return object() if self.fault == "another class" else BrightFilter(self.fault)


class BrightFilter(FrameFilter):
    """As `Bright`."""

    version = 1

    def __init__(self, fault: str) -> None:
        self.fault, self.calls = fault, 0

    def __call__(self, shown: Sequence[Frame]) -> Any:
        self.calls += 1
        if self.fault == "raises":
            raise KeyError("dark")
        if self.fault == "changes":
            shown[0].pixels[:] = 0
        levels = [float(frame.pixels.mean()) for frame in shown]
        if self.fault == "relative":
            levels = [level - min(levels) for level in levels]
        if self.fault == "state":
            levels = [level + self.calls for level in levels]
        if self.fault == "place":
            levels = [level + place for place, level in enumerate(levels)]
        if self.fault == "half":
            return [Score("level", level) if place % 2 else Keep() for place, level in enumerate(levels)]
        return [Drop("dark", level) if level < 30 else Score("level", level) for level in levels]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("another class", "gives a object; judges = 'frames': FrameFilter"),
        ("raises", r"bright: a call raises KeyError: 'dark'"),
        ("state", "f0: .* a second time; a verdict depends on the sample alone"),
        ("place", "f0: .* in another order; a verdict depends"),
        ("relative", "f1: .* alone; a verdict depends"),
        ("changes", "bright changes its samples"),
    ],
)
def test_what_breaks_the_contract_is_said(fault: str, problem: str) -> None:
    with pytest.raises(BrokenContract, match=problem):
        check_filter(Bright(fault=fault), frames())


def test_verdicts_that_a_build_refuses_are_said() -> None:
    with pytest.raises(BadVerdict, match=r"^filter 'bright': f1: scored as 'level', and f0 not scored; score all"):
        check_filter(Bright(fault="half"), frames())


def test_filters_that_keep_it_pass() -> None:
    check_filter(Bright(), frames())
    check_filter(Blank(kind="blank"), frames())
    words = (("A dog.",), ("A dog.", "A cat."))
    captioned = [
        CaptionedCandidate(key=f"s-{n}", group="g", captions0=words[0], captions1=one) for n, one in enumerate(words)
    ]
    check_filter(EqualCaptions(kind="equal-captions"), captioned)
