"""Images that give themselves away by noise, size or nothing; detectors against BiVLC's rules."""

import numpy as np
import pytest

from tests.evaluation.blind_probes.made_benchmark import Made, pair, picture, sentences, unreadable
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
from twinset.evaluation.blind_probes.probes import GivenAway, caption_probes


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
