"""Filters of captions and CLIP scores, the contract that all keep, and the kinds that a recipe can name."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch

from tests.models.diffusion.tiny_models import TOKENS, save_clip
from twinset import check_filter
from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels, Score
from twinset.contracts.parts import Filter
from twinset.contracts.recipe import load_recipe
from twinset.contracts.source import SOURCES
from twinset.filters.captions import EqualCaptions, MotionWords, words
from twinset.filters.clip_scores import TrueOfBoth
from twinset.models.encoders.contract import unit
from twinset.shards.contracts import Context
from twinset.shards.rows import BadVerdict


def candidate(captions0: tuple[str, ...], captions1: tuple[str, ...]) -> CaptionedCandidate:
    return CaptionedCandidate(key="eq-gebc-a", group="v", captions0=captions0, captions1=captions1)


@pytest.mark.parametrize(
    "caption",
    [
        "Man pick up a ball.",
        "Up goes the man.",
        "Man sits UP.",
        "Man look (down).",
        "Man do push-up now.",
        "Walk towards it.",
    ],
)
def test_motion_words_are_taken_away(caption: str) -> None:
    moves = MotionWords(kind="motion-words").judge
    assert moves(candidate((caption,), ("Man stands.",))) == Drop("motion-word")
    assert moves(candidate(("Man stands.",), (caption,))) == Drop("motion-word")
    kept = moves(candidate((caption, "Man sits."), ("Dog sits.", caption)))
    assert kept == candidate(("Man sits.",), ("Dog sits.",))


@pytest.mark.parametrize(
    "caption", ["Man holds a cup.", "The upper lip.", "An upside-downer hat.", "Pickup truck.", "Supdown."]
)
def test_parts_of_words_do_not_count(caption: str) -> None:
    still = candidate((caption,), (caption,))
    assert MotionWords(kind="motion-words").judge(still) == still


def test_the_list_of_words_is_the_recipes() -> None:
    both = candidate(("Man go up.",), ("Man pick   Up it.", "Man is in."))
    assert MotionWords(kind="motion-words", words=("pick up",)).judge(both) == candidate(
        ("Man go up.",), ("Man is in.",)
    )
    assert MotionWords(kind="motion-words", words=("M.n", "(")).judge(both) == both
    for words_ in ((), ("",), (" ",)):
        assert MotionWords(kind="motion-words", words=words_).judge(both) == both


@pytest.mark.parametrize(
    ("captions0", "captions1", "led0", "led1"),
    [
        (("A.",), ("B.",), ("A.",), ("B.",)),
        (("A.", "B."), ("B.", "A."), ("A.", "B."), ("B.", "A.")),
        (("A.", "B."), ("a", "C."), ("B.", "A."), ("C.", "a")),
        (("A.",), ("A.", "B.", "C."), ("A.",), ("B.", "A.", "C.")),
        (("A.", "B.", "C."), ("A.",), ("B.", "A.", "C."), ("A.",)),
    ],
)
def test_captions_that_differ_take_the_lead(
    captions0: tuple[str, ...], captions1: tuple[str, ...], led0: tuple[str, ...], led1: tuple[str, ...]
) -> None:
    assert EqualCaptions(kind="equal-captions").judge(candidate(captions0, captions1)) == candidate(led0, led1)


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Stir it.", "stir  it"),
        ("A t-shirt, red.", "A t shirt red!"),
        ("Add 1 egg.", "ADD 1 EGG"),
        ("Fish & chips.", "Fish & chips"),
    ],
)
def test_case_spacing_and_punctuation_make_no_difference(caption0: str, caption1: str) -> None:
    assert EqualCaptions(kind="equal-captions").judge(candidate((caption0, caption1), (caption1,))) == Drop(
        "equal-captions"
    )


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Add 1.5 cups.", "Add 15 cups."),
        ("Add 1 egg.", "Add 2 eggs."),
        ("Put it on.", "Put it in."),
        ("कि", "की"),
        ("2+2", "2=2"),
    ],
)
def test_words_numbers_and_marks_do(caption0: str, caption1: str) -> None:
    assert words(caption0) != words(caption1)
    assert isinstance(
        EqualCaptions(kind="equal-captions").judge(candidate((caption0,), (caption1,))), CaptionedCandidate
    )


FIRST, SECOND, THIRD = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), np.uint8)
CAPTIONS = ("A photo of a red circle.", "A photo of a blue circle.")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def scoring(clip: Path, **settings: Any) -> TrueOfBoth:
    return TrueOfBoth(kind="true-of-both", model=str(clip), **settings).open()


def pair(image0: Pixels, image1: Pixels, captions: tuple[str, str] = CAPTIONS) -> Pair:
    frames = [
        Frame(f"a#{side}", pixels, -1.0, MediaFile("made", 0, "")) for side, pixels in enumerate((image0, image1))
    ]
    return Pair(
        key="a",
        group="a",
        split="test",
        change="made",
        image0=frames[0],
        image1=frames[1],
        captions0=(captions[0],),
        captions1=(captions[1],),
        provenance={},
    )


def test_a_score_does_not_depend_on_the_other_pairs_of_its_pass(clip: Path) -> None:
    judge = scoring(clip, micro_batch=2).judge
    longer = ("A photo of a large red circle on the left.", "A photo of a large red circle on the right.")
    pairs = [pair(FIRST, SECOND), pair(SECOND, THIRD, longer), pair(THIRD, FIRST)]
    assert judge(pairs) == [judge([one])[0] for one in pairs]


def test_threads_and_precision_of_the_source_stay(clip: Path) -> None:
    """Else what a source draws after the first pass of a filter would round otherwise than before."""
    threads, matmul = torch.get_num_threads(), torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, True  # pytest's monkeypatch cannot put it back
    try:
        scoring(clip, threads=threads + 1).judge([pair(FIRST, SECOND)])
        assert torch.get_num_threads() == threads and matmul.allow_tf32
    finally:
        matmul.allow_tf32 = before


def test_a_caption_is_never_scored_by_its_beginning(clip: Path) -> None:
    longest = " ".join(["red"] * (TOKENS - 2))
    assert -2 <= scoring(clip).judge([pair(FIRST, SECOND, (CAPTIONS[0], longest))])[0].value <= 1
    with pytest.raises(WrongUse, match=r"reads only the beginning of the caption 'red .* red'; name another"):
        scoring(clip).judge([pair(FIRST, SECOND, (CAPTIONS[0], f"{longest} red"))])


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

    version = 1
    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"dark": "a frame is dark"}
    calls: ClassVar[list[int]] = []

    def judge(self, shown: Sequence[Frame]) -> Any:
        self.calls.append(1)
        if self.fault == "changes":
            shown[0].pixels[:] = 0
        levels = [float(frame.pixels.mean()) for frame in shown]
        if self.fault == "relative":
            levels = [level - min(levels) for level in levels]
        if self.fault == "state":
            levels = [level + len(self.calls) for level in levels]
        if self.fault == "place":
            levels = [level + place for place, level in enumerate(levels)]
        if self.fault == "half":
            return [Score("level", level) if place % 2 else Keep() for place, level in enumerate(levels)]
        return [Drop("dark", level) if level < 30 else Score("level", level) for level in levels]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("state", "f0: .* a second time; a verdict depends on the sample alone"),
        ("place", "f0: .* in another order; a verdict depends"),
        ("relative", "f1: .* alone; a verdict depends"),
        ("changes", "bright changes its samples"),
        ("half", "bright.*f1: scored as 'level', and f0 as None; score all"),
    ],
)
def test_what_breaks_the_contract_is_said(fault: str, problem: str) -> None:
    with pytest.raises((AssertionError, BadVerdict), match=problem):
        check_filter(Bright(fault=fault), frames())


def test_looking_up_settings_imports_nothing_heavy() -> None:
    """A recipe is checked, and status is shown, in a second."""
    heavy = ("torch", "av", "cv2", "bpy", "spacy", "diffusers", "dlib", "trimesh", "inflect")
    code = (
        "import sys; from twinset.contracts.parts import FILTERS; from twinset.contracts.source import SOURCES\n"
        "for registry in (FILTERS, SOURCES):\n"
        "    for kind in registry.kinds(): registry.find(kind)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert SOURCES.kinds()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


REASON = "true-of-both"


def judging(**settings: Any) -> TrueOfBoth:
    return TrueOfBoth(kind="true-of-both", model="small-clip", micro_batch=8, **settings).open()


@pytest.fixture(scope="module")
def twins() -> list[Pair]:
    source: Any = load_recipe("demo")["eq-ag"].source
    generator = source.open(Context("twins"))
    return [one for one in generator.make(list(islice(generator.plan(), 16))) if isinstance(one, Pair)]


def test_a_preference_is_the_smaller_of_two_differences() -> None:
    images, captions = (unit(np.random.default_rng(n).standard_normal((3, 2, 8), np.float32)) for n in range(2))
    cosines = np.einsum("nic,njc->nij", captions, images)  # (pairs, captions, images)
    expected = [float(min(one[0, 0] - one[0, 1], one[1, 1] - one[1, 0])) for one in cosines]
    assert judging().measure(images, captions).tolist() == pytest.approx(expected, abs=1e-6)


def test_captions_of_their_own_images_are_preferred_to_ones_of_both(twins: list[Pair]) -> None:
    judge = judging().judge
    scores = judge(twins)
    assert all(isinstance(one, Score) and one.name == "preference" for one in scores)
    # One sentence of two pictures cannot be nearer to both.
    told_alike = [replace(one, captions1=one.captions0) for one in twins]
    assert all(isinstance(one, Score) and one.value <= 0 for one in judge(told_alike))
    assert judge(twins[:3]) == scores[:3]  # whatever else is in a pass


def test_pairs_are_dropped_only_where_it_is_asked_for(twins: list[Pair]) -> None:
    told_alike = [replace(one, captions1=one.captions0) for one in twins[:2]]
    dropped = judging(drop_at_most=0).judge(told_alike)
    assert [one.reason for one in dropped if isinstance(one, Drop)] == [REASON] * 2


def test_a_model_that_gives_no_number_is_refused(twins: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrueOfBoth, "measure", lambda *_: np.array([0.5, float("nan")] * 4))
    with pytest.raises(WrongUse, match=f"small-clip gives nan for {twins[1].key}: its weights are damaged"):
        judging().judge(twins[:2])
