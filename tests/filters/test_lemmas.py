"""Captions that differ in the forms of their verbs alone."""

import shutil
from pathlib import Path

import pytest

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Drop
from twinset.filters.captions import EqualLemmas
from twinset.models.spacy_pipelines import find_pipeline

FILTER = EqualLemmas(kind="equal-lemmas").open()
JUDGE = FILTER.judge


def candidate(captions0: tuple[str, ...], captions1: tuple[str, ...]) -> CaptionedCandidate:
    return CaptionedCandidate(key="eq-gebc-a", group="v", captions0=captions0, captions1=captions1)


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Boy in a white t-shirt turning his head to the right.", "Boy in a white T-shirt turn his head to the right"),
        ("The dog jumping over the fence.", "The dog jumps over the fence."),
        ("Woman in an orange dress spinning on the floor.", "Woman in an orange dress spin on the floor."),
    ],
)
def test_the_form_of_a_verb_makes_no_difference(caption0: str, caption1: str) -> None:
    assert JUDGE(candidate((caption0, caption1), (caption1,))) == Drop("equal-lemmas")
    spaced = caption0.replace(" ", " \u00a0")
    assert JUDGE(candidate((spaced, caption1), (caption1,))) == Drop("equal-lemmas")


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Man flipping the pancake.", "Man flips the pancakes."),  # one can see how many there are
        ("Man turning his head to the left.", "Man turn his head to the right."),
        ("Man holding a bar.", "Man holding a bare."),
        ("Man lifting the pen.", "Man lifts the pen again."),
    ],
)
def test_other_words_do(caption0: str, caption1: str) -> None:
    both = candidate((caption0,), (caption1,))
    assert JUDGE(both) == both


def test_captions_that_say_something_else_take_the_lead() -> None:
    found = JUDGE(candidate(("Man turns his head.", "Man sits."), ("Man turning his head.", "Man stands.")))
    assert found == candidate(("Man sits.", "Man turns his head."), ("Man stands.", "Man turning his head."))


def test_its_pipeline_is_part_of_what_decides(tmp_path: Path) -> None:
    assert FILTER.weights() == {"pipeline": find_pipeline().digest} and FILTER.isolation == "process"
    lacking = EqualLemmas(kind="equal-lemmas", pipeline=str(tmp_path / "none"))
    with pytest.raises(WrongUse, match=r"subsets\.x\.filters\.0\.pipeline: .*neither an installed package"):
        lacking.check_inputs("subsets.x.filters.0", ("models",))


def test_a_pipeline_without_lemmas_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    judge = EqualLemmas(kind="equal-lemmas", pipeline=str(tmp_path / "blank")).judge
    with pytest.raises(WrongUse, match="gives no lemmas, no parts of speech; name an installed package"):
        judge(candidate(("Man runs.",), ("Man sits.",)))
    shutil.copytree(find_pipeline().source, tmp_path / "broken")
    (tmp_path / "broken/vocab/vectors").write_bytes(b"")
    judge = EqualLemmas(kind="equal-lemmas", pipeline=str(tmp_path / "broken")).judge
    with pytest.raises(WrongUse, match="broken: spaCy cannot load it"):
        judge(candidate(("Man runs.",), ("Man sits.",)))
