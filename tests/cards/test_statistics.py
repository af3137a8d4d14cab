"""Statistics counted by hand, and their plots."""

import io
import math
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from PIL import Image

from tests.made_datasets import MadeDataset
from tests.made_samples import HOSTILE, LONG
from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.pair import fewest, lopsided
from twinset.cards.kinds.statistics import FREQUENT, LONGEST, records_of, score_spreads, statistics
from twinset.cards.plots import histograms
from twinset.generators.words_alone.guesses import sign_test


def counted(dataset: MadeDataset, name: str, kind: str) -> SimpleNamespace:
    dataset.index(name)
    records = records_of(dataset.store, name, CARD_KINDS[kind].sample)
    return SimpleNamespace(**statistics(dataset.store, name, CARD_KINDS[kind], records))


def test_words_and_groups_of_pairs_are_counted(made_pairs: MadeDataset) -> None:
    numbers = counted(made_pairs, "eq-ag", "pair")
    # Per whole video: red-green, red-hostile, green-hostile; the last video lacks green-hostile.
    assert numbers.group_sizes == {2: 1, 3: 2} and numbers.top_groups_share == 3 / 8
    assert numbers.frequent[0] == {"word": "disc", "either": 8, "only0": 0, "only1": 0}
    assert numbers.lopsided == []  # six of six are chance, where so many words were counted
    assert numbers.same_bag == 0 and numbers.distinct_captions == 3 and numbers.distinct_images == 9
    assert numbers.caption_words == {4: 11, 14: 5}
    assert (numbers.sampled, numbers.image_sizes, numbers.changes) == (8, {(96, 72): 8}, {"colour": 8})
    assert numbers.earlier0 == 1.0


def test_only_words_that_chance_does_not_explain_are_lopsided() -> None:
    assert sign_test(0, 10) == pytest.approx(2 / 2**10) and sign_test(5, 5) == sign_test(0, 0) == 1.0
    assert sign_test(4, 6) == pytest.approx(2 * sum(math.comb(10, k) for k in range(5)) / 2**10)
    even = [(f"w{n}", 30 + n % 5, 30) for n in range(500)]
    # Over 503 words p must be below 2e-6: 20 of 20 are (1.9e-6), 19 of 19 are not (3.8e-6).
    uses = pl.DataFrame(
        [*even, ("few", 19, 0), ("left", 20, 0), ("right", 100, 300)], ["word", "only0", "only1"], orient="row"
    )
    assert [use["word"] for use in lopsided(uses, 5)] == ["right", "left"]
    assert (fewest(503), fewest(1)) == (20, 11)


def test_templates_are_counted(made_templates: MadeDataset) -> None:
    numbers = counted(made_templates, "focus-attribute", "template")
    # Numbers 0 to 8 but 3; 5 and 6 have conditions of their own, 2 and 7 the same.
    assert numbers.frequent["blue"] == 2 and sum(numbers.frequent.values()) == 8 and numbers.conditions == 7
    assert next(iter(numbers.frequent)) == "blue" and len(numbers.frequent) <= FREQUENT
    assert LONG[:LONGEST] in numbers.frequent and numbers.condition_words == {1: 6, 11: 1, 2000: 1}
    assert numbers.galleries == {10: 8} and (numbers.distinct_images, numbers.image_templates) == (88, {1: 88})
    assert numbers.distracting_targets == 0.0
    assert (numbers.sampled, sum(numbers.image_sizes.values()), numbers.types) == (8, 8, {"color": 8})


def test_triplets_are_counted(made_triplets: MadeDataset) -> None:
    numbers = counted(made_triplets, "triplets", "triplet")
    assert numbers.frequent["beside blue disc"] == 2 and numbers.conditions == 7
    assert numbers.condition_words == {3: 6, 11: 1, 2000: 1}
    assert numbers.top_conditions_share == 2 / 8
    # Number n shows images n, n + 1 and n + 7: 0 to 9 as reference or target, but 3 as neither; 7 to 15 as distractors.
    assert numbers.image_triplets == {1: 4, 2: 6} and numbers.top_images_share == 2 / 16
    assert numbers.distinct_images == 10 + 6 - 1 and numbers.distinct_captions == 1 + 7 + 7
    assert (numbers.same_image, numbers.distractor_again) == (0, 0)
    assert numbers.said_of_reference == 7 / 8  # "disc" or "a" is said of each reference, "another" of none
    assert numbers.sampled == 8 and sum(numbers.image_sizes.values()) == 8


@pytest.mark.parametrize("subset", ["text", "text-index"])
def test_text_pairs_are_counted_and_attacked(made_text_pairs: MadeDataset, subset: str) -> None:
    numbers = counted(made_text_pairs, subset, "text-pair")
    # Numbers 0 to 8 but 3: three images, of which the second lacks a pair; kinds take turns; 5 and 6 are hostile.
    assert numbers.kinds == {"add obj": 3, "unknown": 3, "replace att": 2} and numbers.group_sizes == {2: 1, 3: 2}
    assert numbers.distinct_images == 3 and numbers.distinct_captions == 7 + 8
    assert numbers.caption_words == {3: 6, 11: 1, 2000: 1} and numbers.negative_words == {5: 8}
    assert numbers.sampled == (8 if subset == "text" else 0) and numbers.same_bag == 0
    assert [*numbers.given_away] == ["shorter", "longer", "higher CoLA"], "scores that no pair has are shown"
    guess = numbers.given_away["higher CoLA"]
    assert (guess.n, guess.expected, guess.low) == (7, 1, None), "three images give an interval"


@pytest.mark.slow
@pytest.mark.parametrize("name", [HOSTILE, LONG, "", "$\\frac{1}{", "\u202eabc\x00\ud800", "a\nb\tc", "👩‍🍳 and עברית"])
def test_plots_bear_any_name_and_have_the_same_bytes(name: str) -> None:
    import matplotlib

    steps = ([-1.0, 0.0, 1.0], {"before": [10_000, 3], "after": [3, 3]})
    panels = {"numbers": {1: 2, 7: 1}, "names": {name: 3, "rest": 1}, "none": {}, "gaps": steps}
    content = histograms(panels)
    assert Image.open(io.BytesIO(content)).size == (4 * 620, 360) and b"Software" not in content
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 50}):
        assert histograms(panels) == content
    assert content != histograms({**panels, "gaps": (steps[0], {**steps[1], "after": [3, 2]})})


def test_what_was_not_measured_does_not_count() -> None:
    records: list[Any] = [
        SimpleNamespace(scores={"inside": 0.5, "outside": score, "never": -1.0})
        for score in (-1.0, 0.25, 0.75, -1.0, -1.0)
    ]
    spreads = score_spreads(records, {"outside": "likeness"}, {"outside": -1.0, "never": -1})
    by_name = {spread["name"]: spread for spread in spreads}
    counts = {"samples": 2, "least": 0.25, "middle": 0.5, "most": 0.75}
    assert by_name["outside"] == {"name": "outside", "meaning": "likeness", **counts}
    assert by_name["inside"]["samples"] == 5 and by_name["never"]["samples"] == 0
