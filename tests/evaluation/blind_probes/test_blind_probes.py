"""Features of pairs are those of the encoder, come from the cache, and lack only broken images.

What is read of a benchmark, and what is refused.
Probes find what was planted, and nothing where nothing was.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.blind_probes.made_benchmark import NONE, Made, pair, picture, sentences, unreadable
from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import Reader, open_benchmark
from twinset.evaluation.blind_probes.classifier import cross_validated, text_differences
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.probes import GivenAway, caption_probes, length_probes
from twinset.evaluation.blind_probes.run import encoded, encoder_of, give_away
from twinset.evaluation.examples import LeftOut, Matching, Query
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore


def test_features_are_the_encoders_and_not_normalised(tmp_path: Path) -> None:
    model = PlainEncoder()
    made = matchings(Shelf(), 12)
    broken = pair(99, ("frame 0", "frame 1"), images=(made[0].images[0], unreadable("gone.jpg")))
    single = pair(98, ("frame 0", "frame 1"), images=made[0].images[:1])
    similarities = ByFeatures(model, FeatureStore(tmp_path, "plain"), 4)
    texts, images = encoded(read_pairs(Made([*made, broken, single])), similarities)
    similarities.close()
    assert images is not None and texts.shape == images.shape == (14, 2, 6)
    assert np.array_equal(texts[3], model.text_features(made[3].captions)) and not np.isnan(texts).any()
    assert np.isnan(images[12:]).all() and not np.isnan(images[:12]).any()
    assert np.array_equal(images[0, 1], images[1, 0]), "neighbours share a picture"
    assert model.images == 6, "a picture is encoded twice"


def test_pairs_of_one_image_have_features_of_captions_alone(tmp_path: Path) -> None:
    similarities = ByFeatures(PlainEncoder(), FeatureStore(tmp_path, "plain"), 4)
    texts, images = encoded(read_pairs(Made([pair(0, ("a", "b"))])), similarities)
    assert images is None and texts.shape == (1, 2, 6)


def test_a_model_that_is_not_a_dual_encoder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.evaluation.blind_probes.run.open_model", lambda model, running: object())
    with pytest.raises(WrongUse, match="--model vilt:x: probes need features"):
        encoder_of("vilt:x", tmp_path)


def test_probes_on_features_are_part_of_the_whole(tmp_path: Path) -> None:
    similarities = ByFeatures(PlainEncoder(), FeatureStore(tmp_path, "plain"), 8)
    found = give_away(Made(matchings(Shelf(), 24, 12)), encode=lambda pairs: encoded(pairs, similarities)).as_json()
    similarities.close()
    assert {"text features", "image features", "text and image features"} <= found["all"]["probes"].keys()
    assert found["all"]["detectors"].keys() >= {"text detector", "image detector", "i2t", "t2i", "group"}
    assert "images: not asked for" in found["notes"]


def test_rows_are_all_subsets_and_their_categories_in_order() -> None:
    made = Made(
        [
            pair(0, ("a", "b"), subset="swap", category="obj"),
            pair(1, ("c", "d"), subset="add", category="add"),
            LeftOut("file", "missing image"),
            pair(2, ("e", "f"), subset="swap", category="att", group="g0"),
            LeftOut("file", "missing image"),
        ]
    )
    pairs = read_pairs(made)
    assert {row: places.tolist() for row, places in pairs.rows.items()} == {
        "all": [0, 1, 2],
        "swap": [0, 2],
        "swap / obj": [0],
        "swap / att": [2],
        "add": [1],
    }
    assert pairs.captions == (["a", "c", "e"], ["b", "d", "f"])
    assert pairs.groups.tolist() == [0, 1, 0] and [places.tolist() for places in pairs.subset_places()] == [[0, 2], [1]]
    assert pairs.left_out == {"missing image": 2}


def test_an_example_without_a_group_is_one_of_its_own() -> None:
    alone = [pair(number, ("a", "b")) for number in range(3)]
    for one in alone:
        object.__setattr__(one, "group", "")
    assert len({*read_pairs(Made(alone)).groups.tolist()}) == 3


def test_a_single_subset_is_not_repeated_as_a_row() -> None:
    assert [*read_pairs(Made([pair(0, ("a", "b"))])).rows] == ["all"]


def test_a_benchmark_without_pairs_is_refused_with_what_it_has() -> None:
    query = Query(key="q", subset="s", group="g", image=NONE, text="t", gallery=(NONE,), targets=frozenset({0}))
    with pytest.raises(
        WrongUse, match=r"Made \(2026\): no pairs of captions to probe \(1 not a pair of captions: a query"
    ):
        read_pairs(Made([query]))
    with pytest.raises(WrongUse, match=r"2 missing image"):
        read_pairs(Made([LeftOut("a", "missing image"), LeftOut("b", "missing image")]))
    with pytest.raises(WrongUse, match="no examples at all"):
        read_pairs(Made([]))


SUGARCREPE = Path(__file__).parents[3] / "../shared/data/sugarcrepe"


def given_away(examples: list[Matching], seed: int = 0) -> GivenAway:
    pairs = read_pairs(Made(examples))
    probes, notes = caption_probes(pairs, seed)
    return GivenAway("made", "Made", pairs, probes, notes)


def classified(examples: list[Matching], row: str = "all", seed: int = 0) -> dict[str, object]:
    found = given_away(examples, seed).as_json()
    return (found["all"] if row == "all" else found["by"][row])["probes"]["text classifier"]


def test_a_planted_word_is_found_and_only_in_its_subset() -> None:
    plain = [pair(number, captions, subset="plain") for number, captions in enumerate(sentences(200, 1))]
    told = [
        pair(200 + number, (first, second.replace("beside", "next to")), subset="told")
        for number, (first, second) in enumerate(sentences(200, 2))
    ]
    found = given_away([*plain, *told])
    json_ = found.as_json()
    assert json_["by"]["told"]["probes"]["text classifier"]["expected"] == 100
    assert json_["by"]["told"]["probes"]["text classifier"]["solves"]
    assert not json_["by"]["plain"]["probes"]["text classifier"]["flagged"]
    assert [row for row, _ in found.solved()] == ["all", "told"]
    assert json_["by"]["told"]["probes"]["words"]["guess"] == "fewer words"
    assert json.loads(json.dumps(json_)) == json_


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_captions_are_guessed_by_chance(seed: int) -> None:
    """Real differences between the captions of a pair, and groups of several pairs; only the order is shuffled."""
    random = np.random.default_rng(seed)
    made = []
    for number, (first, second) in enumerate(sentences(400, seed)):
        captions = (first, second.replace("beside", "next to"))
        made.append(pair(number, captions if random.random() < 0.5 else captions[::-1], group=f"g{number // 3}"))
    one = classified(made, seed=seed)
    assert one["low"] - 3 <= 50 <= one["high"] + 3 and not one["flagged"]


def test_pairs_of_one_group_never_teach_each_other() -> None:
    """Each group has a word of its own that gives its pairs away: learnt from the group, it would give 100 %."""
    made = [
        pair(number, (f"x{number // 4} {first}", f"y{number // 4} {second}"), group=f"g{number // 4}")
        for number, (first, second) in enumerate(sentences(400, 3))
    ]
    differences = text_differences(*read_pairs(Made(made)).captions)[:, :-2]
    apart = cross_validated(differences, read_pairs(Made(made)).groups, 0)
    together = cross_validated(differences, np.arange(400), 0)
    assert apart is not None and together is not None
    assert np.mean(together > 0) > 0.85 and 0.4 < np.mean(apart > 0) < 0.6


def test_the_order_of_captions_changes_signs_alone() -> None:
    firsts, seconds = map(list, zip(*sentences(50, 4), strict=True))
    there, back = text_differences(firsts, seconds), text_differences(seconds, firsts)
    assert abs(there + back).max() == 0 and abs(there).max() > 0


def test_the_same_seed_gives_the_same_guesses() -> None:
    made = [pair(number, captions) for number, captions in enumerate(sentences(60, 5))]
    first, again, other = (caption_probes(read_pairs(Made(made)), seed)[0][-1].signs for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_equal_captions_are_ties_and_exactly_chance() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = given_away([pair(number, ("A dog.", "A dog.")) for number in range(40)]).as_json()
    for one in found["all"]["probes"].values():
        assert (one["expected"], one["ties"], one["right"], one["flagged"]) == (50, 100, 0, False)
    assert found["all"]["same_bag"] == 100 and found["solved"] == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_examples_are_counted_but_never_flagged(count: int) -> None:
    found = given_away([pair(number, ("A dog.", "A big dog.")) for number in range(count)])
    numbers = found.as_json()["all"]
    assert numbers["probes"]["characters"]["expected"] == 100 and numbers["probes"]["characters"]["low"] is None
    assert found.as_json()["solved"] == []
    if count == 1:
        assert "text classifier" not in numbers["probes"]
        assert found.notes == ["text classifier: 1 subset of a single group, which nothing can be cross-validated on"]


def test_one_group_is_not_cross_validated() -> None:
    found = given_away([pair(number, captions, group="one") for number, captions in enumerate(sentences(30, 6))])
    assert found.notes and "text classifier" not in found.as_json()["all"]["probes"]


def test_captions_alone_do_not_solve_pairs_of_two_images() -> None:
    two = (NONE, picture("b", np.zeros((8, 8, 3), np.uint8)))
    found = given_away([pair(number, ("A dog.", "A big dog."), images=two) for number in range(40)])
    one = found.as_json()["all"]["probes"]["characters"]
    assert one["flagged"] and not one["solves"] and not list(found.solved())


def sugarcrepe(*kinds: str) -> Reader:
    if not SUGARCREPE.is_dir():
        pytest.skip("SugarCrepe is not in ../shared/data/sugarcrepe on this machine")
    return open_benchmark("sugarcrepe", SUGARCREPE, kinds, captions_only=True)


def test_published_counts_of_sugarcrepe() -> None:
    pairs = read_pairs(sugarcrepe())
    found = GivenAway("sugarcrepe", "SugarCrepe", pairs, length_probes(pairs))
    shorter = next(one for one in found.found["all"] if one.probe.name == "characters")
    assert (shorter.said, shorter.guess.n, shorter.guess.right, shorter.guess.ties) == ("shorter", 7511, 4861, 978)
    assert round(found.as_json()["all"]["probes"]["characters"]["right"], 2) == 64.72
    assert int(found.same_bag.sum()) == 572
    assert {row for row, _ in found.solved()} == {"all", "add_att", "add_obj", "replace_rel"}


def test_a_classifier_of_words_solves_swaps_of_sugarcrepe_that_lengths_do_not() -> None:
    found = give_away(sugarcrepe("swap_att", "swap_obj"))
    assert {("all", "text classifier"), ("swap_att", "text classifier")} <= {
        (row, one.probe.name) for row, one in found.solved()
    }
    assert not any(one.guess.solved for one in found.found["all"] if one.probe.name in ("characters", "words"))
