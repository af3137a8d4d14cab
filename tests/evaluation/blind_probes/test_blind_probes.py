"""What is read of a benchmark, and what is refused; probes find what was planted, and nothing where nothing was.

Features of pairs are the encoder's, come from the cache, and lack only broken images; detectors by BiVLC's rules.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, SmallBenchmark, matchings
from tests.guard.test_oracles import at_hand
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.blind_probes.detectors import Detector, Detectors, detector_outcomes
from twinset.evaluation.blind_probes.detectors import detection_accuracy as accuracy
from twinset.evaluation.blind_probes.document import probes_of, write_probes
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.probes import caption_probes, cross_validated, document_of, text_differences
from twinset.evaluation.blind_probes.run import detected, encoded, give_away
from twinset.evaluation.examples import LeftOut, Matching, Picture, Query
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore


def _refuse() -> bytes:
    raise WrongUse("gone")


NONE = Picture("gone.jpg", _refuse)
NOUNS = ("dog", "cat", "bus", "tree", "boat", "lamp", "horse", "kite")
COLOURS = ("red", "blue", "green", "grey", "white", "black")


def pair(
    number: int, captions: tuple[str, str], images: tuple[Picture, ...] = (NONE,), group: str = "", **named: str
) -> Matching:
    """A matching; a group of its own unless it is named."""
    named = {"subset": "made", "category": "", **named}
    return Matching(key=f"k{number}", group=group or f"g{number}", images=images, captions=captions, **named)


def benchmark_of(made: Sequence[Matching | Query | LeftOut]) -> SmallBenchmark:
    return SmallBenchmark(lambda: made, "made")


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Two captions each, made alike: nothing tells which comes first."""
    random = np.random.default_rng(seed)

    def sentence() -> str:
        first, second = random.choice(NOUNS, 2)
        return f"A {random.choice(COLOURS)} {first} beside a {random.choice(COLOURS)} {second}."

    return [(sentence(), sentence()) for _ in range(count)]


def test_features_are_the_encoders_and_not_normalised(tmp_path: Path) -> None:
    model = PlainEncoder()
    made = matchings(Shelf(), 12)
    broken = pair(99, ("frame 0", "frame 1"), images=(made[0].images[0], NONE))
    single = pair(98, ("frame 0", "frame 1"), images=made[0].images[:1])
    similarities = ByFeatures(model, FeatureStore(tmp_path, "plain"), 4)
    texts, images = encoded(read_pairs(benchmark_of([*made, broken, single])), similarities)
    assert images is not None and texts.shape == images.shape == (14, 2, 6)
    assert np.array_equal(texts[3], model.text_features(made[3].captions)) and not np.isnan(texts).any()
    assert np.isnan(images[12:]).all() and not np.isnan(images[:12]).any()
    assert np.array_equal(images[0, 1], images[1, 0]), "neighbours share a picture"
    assert model.images == 6, "a picture is encoded twice"
    texts, none = encoded(read_pairs(benchmark_of([pair(0, ("a", "b"))])), similarities)
    assert none is None and texts.shape == (1, 2, 6)


def test_a_benchmark_without_pairs_is_refused_with_what_it_has() -> None:
    query = Query(key="q", subset="s", group="g", image=NONE, text="t", gallery=(NONE,), targets=frozenset({0}))
    for made, message in (
        ([query, LeftOut("a", "missing image")], r"\(1 not a pair of captions: a query.*, 1 missing image"),
        ([pair(n, ("a", "b"), subset=name) for n, name in enumerate(("all", "x"))], "the name of a subset is 'all'"),
    ):
        with pytest.raises(WrongUse, match=message):
            read_pairs(benchmark_of(made))


def test_a_planted_word_is_found_and_only_in_its_subset(tmp_path: Path) -> None:
    plain = [pair(number, captions, subset="plain") for number, captions in enumerate(sentences(200, 1))]
    planted = [
        pair(200 + number, (first, second.replace("beside", "next to")), subset="planted")
        for number, (first, second) in enumerate(sentences(200, 2))
    ]
    document = give_away(benchmark_of([*plain, *planted]))
    guessed = document.by["planted"].probes
    assert guessed["text classifier"].expected == 100 and guessed["text classifier"].solves
    assert guessed["words"].guess == "fewer words" and not document.by["plain"].probes["text classifier"].flagged
    assert [solved["row"] for solved in document.solved] == ["all", "planted"]
    assert write_probes(document, tmp_path) == tmp_path / "probes" / "made.json"
    assert probes_of(tmp_path, "made") == document and probes_of(tmp_path, "absent") is None
    (tmp_path / "probes" / "made.json").write_text('{"all": 1}')
    with pytest.raises(WrongUse, match="not a report of blind probes"):
        probes_of(tmp_path, "made")


def test_pairs_of_one_group_never_teach_each_other() -> None:
    """Each group has a word of its own that gives its pairs away: learnt from the group, it would give 100 %."""
    made = [
        pair(number, (f"x{number // 4} {first}", f"y{number // 4} {second}"), group=f"g{number // 4}")
        for number, (first, second) in enumerate(sentences(400, 3))
    ]
    differences = text_differences(*read_pairs(benchmark_of(made)).captions)[:, :-2]
    apart = cross_validated(differences, read_pairs(benchmark_of(made)).groups, 0)
    together = cross_validated(differences, np.arange(400), 0)
    assert apart is not None and together is not None
    assert np.mean(together > 0) > 0.85 and 0.4 < np.mean(apart > 0) < 0.6


def test_equal_captions_are_ties_and_exactly_chance() -> None:
    document = give_away(benchmark_of([pair(number, ("A dog.", "A dog.")) for number in range(40)]))
    for guessed in document.all.probes.values():
        assert (guessed.expected, guessed.ties, guessed.right, guessed.flagged) == (50, 100, 0, False)
    assert document.all.same_bag == 100 and document.solved == []


@pytest.mark.parametrize("count", [3, 9])
def test_few_groups_are_counted_but_never_flagged(count: int) -> None:
    document = give_away(benchmark_of([pair(n, ("A dog.", "A big dog."), group=f"{n % count}") for n in range(30)]))
    characters = document.all.probes["characters"]
    assert characters.expected == 100 and characters.low is None and document.solved == []
    assert len(document.notes) == (count < 5) and ("text classifier" in document.all.probes) == (count >= 5)


def test_published_counts_of_sugarcrepe() -> None:
    reader = open_benchmark("sugarcrepe", at_hand("sugarcrepe"), captions_only=True)
    pairs = read_pairs(reader)
    document = document_of(reader, pairs, caption_probes(pairs, 0)[:2], {}, [])
    shorter = document.all.probes["characters"]
    assert (shorter.guess, shorter.n) == ("shorter", 7511)
    assert (shorter.right, shorter.ties) == pytest.approx((100 * 4861 / 7511, 100 * 978 / 7511))
    assert document.all.same_bag == pytest.approx(100 * 572 / 7511)
    assert {solved["row"] for solved in document.solved} == {"all", "add_att", "add_obj", "replace_rel"}


def test_outcomes_of_detectors_by_hand() -> None:
    texts = np.array([[0.1, 0.9], [0.6, 0.9], [0.2, 0.1], [0.5, 0.500001]])
    images = np.array([[0.2, 0.8], [0.2, 0.8], [0.2, 0.8], [0.6, 0.7]])
    assert {name: right.tolist() for name, right in detector_outcomes(texts, images).items()} == {
        "text_score_i0": [True, True, False, False],
        "text_score_i1": [True, True, False, True],
        "image_score_c0": [True, False, True, True],  # 0.5 rounds to natural
        "image_score_c1": [True, True, False, True],
        "i2t": [True, True, False, False],
        "t2i": [True, False, False, True],
        "group": [True, False, False, False],
    }
    assert accuracy(texts) == 6 / 8


def test_detectors_are_asked_pairs_with_features_of_both_images() -> None:
    made = benchmark_of([pair(n, ("a", "b"), images=(NONE, NONE)) for n in range(200)])
    texts, images = np.random.default_rng(4).normal(0, 1, (2, 200, 2, 16)).astype(np.float32)
    images[7] = np.nan
    detector = Detector(np.eye(16, dtype=np.float32)[0], 0.0)
    shares = detected(Detectors(detector, detector, {}), texts, images)
    measured = document_of(made, read_pairs(made), [], shares, []).all.detectors
    right = accuracy(detector(texts[np.arange(200) != 7]))
    assert measured["text detector"] == pytest.approx(100 * right)
    assert {"image detector", "i2t", "t2i", "group"} <= measured.keys()
    assert detected(Detectors(detector, None, {}), texts, None).keys() == {"text detector", "i2t"}
