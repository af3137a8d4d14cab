"""Filters of captions and of CLIP scores, and the faults that `twinset.check_filter` names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from tests.filters.test_image_filters import CAPTIONS, frame, noise, pair
from tests.models.diffusion.tiny_models import TOKENS, save_clip
from twinset import check_filter
from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Drop, Frame, Score
from twinset.contracts.parts import Filter
from twinset.filters.captions import EqualCaptions, MotionWords
from twinset.filters.clip_scores import REASON, TrueOfBoth
from twinset.models.encoders.contract import unit
from twinset.shards.rows import BadVerdict

Captions = tuple[str, ...]


def candidate(captions0: Captions, captions1: Captions) -> CaptionedCandidate:
    return CaptionedCandidate(key="eq-gebc-a", group="v", captions0=captions0, captions1=captions1)


@pytest.mark.parametrize(
    "caption",
    ["Man pick up a ball.", "Up goes the man.", "Man look (down).", "Man do push-up now.", "Walk TOWARDS it."],
)
def test_motion_words_are_taken_away(caption: str) -> None:
    judge = MotionWords(kind="motion-words").judge
    assert judge(candidate((caption,), ("Man stands.",))) == Drop("motion-word")
    assert judge(candidate(("Man stands.",), (caption,))) == Drop("motion-word")
    kept = judge(candidate((caption, "Man sits."), ("Dog sits.", caption)))
    assert kept == candidate(("Man sits.",), ("Dog sits.",))


def test_parts_of_words_do_not_count_and_the_list_of_words_is_the_recipes() -> None:
    still, moves = ("Man holds a cup.", "An upside-downer hat.", "Pickup truck."), ("Man pick   Up it.", "M(n is in.")
    assert MotionWords(kind="motion-words").judge(candidate(still, still)) == candidate(still, still)
    judge = MotionWords(kind="motion-words", words=("pick up", "M.n", "(")).judge
    assert judge(candidate(still, moves)) == candidate(still, moves[1:])


@pytest.mark.parametrize(
    ("captions0", "captions1", "expected"),
    [
        (("A.",), ("B.",), candidate(("A.",), ("B.",))),
        # A caption that the other image has too does not lead.
        (("A.", "B."), ("a", "C."), candidate(("B.", "A."), ("C.", "a"))),
        (("A.",), ("A.", "B.", "C."), candidate(("A.",), ("B.", "A.", "C."))),
        (("A.", "B.", "C."), ("A.",), candidate(("B.", "A.", "C."), ("A.",))),
        # Case, spaces and punctuation make no difference; numbers, marks and symbols do.
        (("A t-shirt,  red.", "a T shirt red!"), ("A t shirt red",), Drop("equal-captions")),
        (("Add 1.5 cups.",), ("Add 15 cups.",), candidate(("Add 1.5 cups.",), ("Add 15 cups.",))),
        (("कि",), ("की",), candidate(("कि",), ("की",))),
    ],
)
def test_captions_that_differ_take_the_lead(
    captions0: Captions, captions1: Captions, expected: CaptionedCandidate | Drop
) -> None:
    assert EqualCaptions(kind="equal-captions").judge(candidate(captions0, captions1)) == expected


FIRST, SECOND = (noise(seed, 0, 256) for seed in range(2))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def scoring(clip: Path, **settings: Any) -> TrueOfBoth:
    return TrueOfBoth(kind="true-of-both", model=str(clip), **settings).open()


def test_a_preference_is_the_smaller_of_two_differences() -> None:
    images, captions = (unit(np.random.default_rng(n).standard_normal((3, 2, 8), np.float32)) for n in range(2))
    cosines = np.einsum("nic,njc->nij", captions, images)  # (pairs, captions, images)
    expected = [float(min(own[0, 0] - own[0, 1], own[1, 1] - own[1, 0])) for own in cosines]
    assert scoring(Path("model")).measure(images, captions).tolist() == pytest.approx(expected, abs=1e-6)


def test_pairs_are_dropped_only_where_it_is_asked_for(clip: Path) -> None:
    same_captions = pair(FIRST, SECOND, captions=(CAPTIONS[0], CAPTIONS[0]))
    (score,) = scoring(clip).judge([same_captions])
    assert isinstance(score, Score) and score.name == "preference" and score.value <= 0
    assert scoring(clip, drop_at_most=0).judge([same_captions]) == [Drop(REASON, score.value)]


def test_what_a_model_cannot_score_is_refused(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = " ".join(["red"] * (TOKENS - 2))
    assert len(scoring(clip).judge([pair(FIRST, SECOND, captions=(CAPTIONS[0], longest))])) == 1
    with pytest.raises(WrongUse, match="reads only the beginning of the caption"):
        scoring(clip).judge([pair(FIRST, SECOND, captions=(CAPTIONS[0], f"{longest} red"))])
    monkeypatch.setattr(TrueOfBoth, "measure", lambda *_: np.array([float("nan")]))
    with pytest.raises(WrongUse, match="gives nan for the-pair: its weights are damaged"):
        scoring(clip).judge([pair(FIRST, SECOND, "the-pair")])


class Bright(Filter):
    """Scores brightness, with the faults of a filter."""

    kind: Literal["bright"] = "bright"
    fault: str = ""
    version = 1
    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"dark": "a frame is dark"}
    calls: ClassVar[list[int]] = []

    def judge(self, shown: Sequence[Frame]) -> Any:
        self.calls.append(1)
        if self.fault == "changes":
            shown[0].pixels[:] = 0
        levels = [float(frame.pixels.mean()) for frame in shown]
        if self.fault == "state":
            levels = [level + len(self.calls) for level in levels]
        if self.fault == "place":
            levels = [level + place for place, level in enumerate(levels)]
        return [Drop("dark", level) if level < 30 else Score("level", level) for level in levels]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("state", "f0: .* a second time; a verdict depends on the sample alone"),
        ("place", "f0: .* in another order; a verdict depends"),
        ("changes", "bright changes its samples"),
    ],
)
def test_what_breaks_the_contract_is_said(fault: str, problem: str) -> None:
    frames = [frame(f"f{n}", noise(n, 0, 50 + 40 * n)) for n in range(4)]
    with pytest.raises((AssertionError, BadVerdict), match=problem):
        check_filter(Bright(fault=fault), frames)
