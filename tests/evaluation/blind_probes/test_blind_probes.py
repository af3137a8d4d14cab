"""Features of pairs are those of the encoder, come from the cache, and lack only broken images.

What is read of a benchmark, and what is refused.
Probes find what was planted, and nothing where nothing was.

Images that give themselves away by noise, size or nothing; detectors against BiVLC's rules.
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
from twinset.evaluation.blind_probes.detectors import (
    IMAGE_EPOCHS,
    TEXT_EPOCHS,
    cross_validated_detector,
    detection_accuracy,
    detector_outcomes,
    train_detector,
)
from twinset.evaluation.blind_probes.image_probes import both, feature_probes, image_probes, looks_of, measure
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


def photo(name: str, random: np.random.Generator, noise: float, side: int = 96) -> object:
    """A smooth scene of random colours, with noise."""
    corners = random.uniform(40, 215, (2, 2, 3))
    along = np.linspace(0, 1, side)
    weights = np.stack([1 - along, along], axis=1)
    smooth = np.einsum("ya,xb,abc->yxc", weights, weights, corners)
    return picture(name, np.clip(smooth + random.normal(0, noise, smooth.shape), 0, 255).astype(np.uint8))


def two_images(count: int, noise: tuple[float, float], seed: int, **sides: int) -> Made:
    random = np.random.default_rng(seed)
    made = []
    for number, captions in enumerate(sentences(count, seed)):
        images = tuple(
            photo(f"{number}-{side}", random, one, sides.get(f"side{side}", 96)) for side, one in enumerate(noise)
        )
        made.append(pair(number, captions, images=images))
    return Made(made)


def probed(made: Made) -> tuple[dict[str, dict[str, object]], list[str]]:
    pairs = read_pairs(made)
    probes, notes = image_probes(pairs, 0)
    return GivenAway("made", "Made", pairs, probes, notes).as_json()["all"]["probes"], notes


def test_noise_gives_an_image_away_and_images_made_alike_do_not() -> None:
    told, notes = probed(two_images(24, (1.0, 6.0), 0))
    assert told["image classifier"]["flagged"] and told["image classifier"]["expected"] > 90 and not notes
    assert told["pixels"]["ties"] == 100 and not told["pixels"]["flagged"]
    assert told["file size"]["guess"] == "smaller file" and not told["file size"]["solves"], (
        "half of the pair is unknown"
    )
    alike, _ = probed(two_images(24, (3.0, 3.0), 1))
    assert not alike["image classifier"]["flagged"] and not alike["file size"]["flagged"]


def test_sizes_give_images_away() -> None:
    told, _ = probed(two_images(12, (2.0, 2.0), 2, side0=64, side1=80))
    assert told["pixels"]["guess"] == "fewer pixels" and told["pixels"]["expected"] == 100


def test_pairs_of_which_an_image_cannot_be_read_are_counted() -> None:
    made = two_images(12, (1.0, 6.0), 3)
    broken = pair(99, ("a", "b"), images=(unreadable("gone.jpg"), made.made[0].images[0]))
    garbage = pair(98, ("a", "b"), images=(made.made[0].images[0], type(broken.images[0])("bad.png", lambda: b"PNG")))
    told, notes = probed(Made([*made.made, broken, garbage]))
    assert notes == ["images: 2 pairs with one that cannot be read"] and told["image classifier"]["n"] == 12
    none, notes = probed(Made([broken]))
    assert none == {} and notes == ["images: 1 pairs with one that cannot be read"]


def test_pairs_of_one_image_have_no_probe_of_images() -> None:
    probes, notes = image_probes(read_pairs(Made([pair(0, ("a", "b"))])), 0)
    assert (probes, notes) == ([], ["images: one for each pair, which tells nothing of its captions"])


def test_each_image_is_read_once() -> None:
    read = []
    shared = photo("shared", np.random.default_rng(0), 1.0)
    counted = type(shared)("shared", lambda: read.append(1) or shared.read())
    found = measure([(counted, counted), (counted, counted)])
    assert len(read) == 1 and found.looks.shape == (2, 2, 74) and found.whole.all()


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (128, 128), (1000, 200)])
def test_looks_are_finite_at_any_size(size: tuple[int, int]) -> None:
    from PIL import Image

    assert np.isfinite(looks_of(Image.new("RGB", size, "white"))).all()


def test_both_classifiers_match_what_both_get_right_or_both_get_wrong() -> None:
    pairs = read_pairs(Made([pair(number, ("a", "b")) for number in range(5)]))
    text, image = (caption_probes(pairs, 0)[0][0] for _ in range(2))
    text.signs[:] = [1, 1, -1, 0, 1]
    image.signs[:] = [1, -1, -1, 1, 2]
    assert both("both", text, image).signs.tolist() == [1, -1, 1, 0, 2]


def features(count: int, apart: float, seed: int, channels: int = 16) -> np.ndarray:
    """Features of pairs, the second half moved along one axis."""
    found = np.random.default_rng(seed).normal(0, 1, (count, 2, channels))
    found[:, 1, 0] += apart
    return found.astype(np.float32)


def test_a_detector_learns_what_sets_synthetic_features_apart_and_chance_otherwise() -> None:
    train, validation, test = features(4000, 4, 0), features(200, 4, 1), features(500, 4, 2)
    found = train_detector(train, validation, 30, 0)
    assert detection_accuracy(found(test)) > 0.9 and found.weight[0] > 3 * np.abs(found.weight[1:]).max()
    again = train_detector(train, validation, 30, 0)
    assert (again.weight == found.weight).all() and again.bias == found.bias
    blind = cross_validated_detector(features(600, 0, 3), np.arange(600, dtype=np.int32), TEXT_EPOCHS, 0)
    assert blind is not None and 0.45 < detection_accuracy(blind) < 0.55
    assert cross_validated_detector(test[:4], np.arange(4, dtype=np.int32), IMAGE_EPOCHS, 0) is None


def test_outcomes_of_detectors_by_hand() -> None:
    texts = np.array([[0.1, 0.9], [0.6, 0.9], [0.2, 0.1], [0.5, 0.500001]])
    images = np.array([[0.2, 0.8], [0.2, 0.8], [0.2, 0.8], [0.6, 0.7]])
    found = {name: right.tolist() for name, right in detector_outcomes(texts, images).items()}
    assert found["text_score_i0"] == [True, True, False, False]
    assert found["text_score_i1"] == [True, True, False, True]
    assert found["image_score_c0"] == [True, False, True, True], "0.5 rounds to natural"
    assert found["image_score_c1"] == [True, True, False, True]
    assert found["i2t"] == [True, True, False, False] and found["t2i"] == [True, False, False, True]
    assert found["group"] == [True, False, False, False]
    assert detection_accuracy(texts) == 6 / 8


def test_features_solve_pairs_only_where_both_sides_are_told() -> None:
    pairs = read_pairs(Made([pair(n, ("a", "b"), images=(unreadable("a"), unreadable("b"))) for n in range(200)]))

    def told(texts: np.ndarray, images: np.ndarray) -> GivenAway:
        probes, shares, notes = feature_probes(pairs, texts, images, 0)
        return GivenAway("made", "Made", pairs, probes, notes, shares)

    apart = told(features(200, 5, 4), features(200, 5, 5))
    assert [(row, one.probe.name) for row, one in apart.solved()] == [("all", "text and image features")]
    assert {"text detector", "image detector", "i2t", "t2i", "group"} <= apart.as_json()["all"]["detectors"].keys()
    assert not list(told(features(200, 5, 4), features(200, 0, 6)).solved())


def test_of_pairs_of_one_image_only_captions_have_features() -> None:
    pairs = read_pairs(Made([pair(n, ("a", "b")) for n in range(50)]))
    probes, shares, _ = feature_probes(pairs, features(50, 5, 7), None, 0)
    assert [one.name for one in probes] == ["text features"] and shares["all"].keys() == {"text detector", "i2t"}


def test_pairs_without_features_of_an_image_are_left_out_of_features_alone() -> None:
    pairs = read_pairs(Made([pair(n, ("a", "b"), images=(unreadable("a"), unreadable("b"))) for n in range(60)]))
    images = features(60, 5, 8)
    images[7] = np.nan
    probes, shares, notes = feature_probes(pairs, features(60, 5, 9), images, 0)
    assert notes == ["image features: 1 pairs have none: a single image, or one that cannot be read"]
    assert {one.name: int((one.signs == 2).sum()) for one in probes} == {
        "text features": 0,
        "image features": 1,
        "text and image features": 1,
    }
    assert shares["all"]["image detector"] > 0.5
    images[:] = np.nan
    assert feature_probes(pairs, features(60, 5, 9), images, 0)[:2] == ([], {})
