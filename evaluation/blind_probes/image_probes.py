"""What the images of a pair give away on their own, and together with what the captions do."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.blind_probes.detectors import (
    IMAGE_EPOCHS,
    TEXT_EPOCHS,
    Detectors,
    cross_validated_detector,
    detection_accuracy,
    detector_outcomes,
)
from twinset.evaluation.blind_probes.pairs import Pairs
from twinset.evaluation.blind_probes.pictures import measure, standardised
from twinset.evaluation.blind_probes.probes import Probe, Sees, classify, signs_of
from twinset.generators.blind_guesses import MISSING

BOTH = "captions and images, each by a classifier of its own"


def image_probes(pairs: Pairs, seed: int) -> tuple[list[Probe], list[str]]:
    """Guesses of which image is the first, from files and from looks; and what could not be asked.

    Pairs of one image have none.
    """
    places = np.array([place for place, images in enumerate(pairs.images) if len(images) == 2], np.intp)
    if not len(places):
        return [], ["images: one for each pair, which tells nothing of its captions"]
    measured = measure([pairs.images[place] for place in places.tolist()])
    notes = [f"images: {measured.unreadable:,} pairs with one that cannot be read"] if measured.unreadable else []

    def gaps(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.full((len(pairs), *numbers.shape[2:]), np.nan)
        found[places] = numbers[:, 0] - numbers[:, 1]
        return found

    probes = [
        Probe("pixels", "images", {-1: "fewer pixels", 1: "more pixels"}, signs_of(gaps(measured.pixels))),
        Probe("file size", "images", {-1: "smaller file", 1: "larger file"}, signs_of(gaps(measured.size))),
    ]
    if not measured.whole.any():
        return probes, notes
    classified, few = classify("image classifier", "images", pairs, standardised(gaps(measured.looks)), seed)
    return [*probes, classified], notes + few


def both(name: str, texts: Probe, images: Probe) -> Probe:
    """Whether two guesses match the halves: if both are right, or both are wrong, caption 0 is given to image 0."""
    there = (texts.signs != MISSING) & (images.signs != MISSING)
    signs = np.where(there, texts.signs * images.signs, MISSING).astype(np.int8)
    return Probe(name, "both", {1: BOTH}, signs)


def feature_probes(
    pairs: Pairs,
    texts: NDArray[np.float32],
    images: NDArray[np.float32] | None,
    seed: int,
    detectors: Detectors | None = None,
) -> tuple[list[Probe], Mapping[str, Mapping[str, float]], list[str]]:
    """Classifiers and BiVLC's detectors on the features of a dual encoder.

    Args:
        pairs: whose pairs have two images each where there are features of images.
        texts: (n, 2, d), features of captions, not normalised. images: likewise, None where no pair has two; NaN for
            pairs that have one, or one that cannot be read.
        seed: of folds and of first weights.
        detectors: trained on other data and the same encoder; None: cross-validated on these pairs.

    Returns:
        Probes; shares (0-1) by row that the detectors get right; what could not be asked.
    """
    probes, notes = list[Probe](), list[str]()
    halves: tuple[tuple[str, Sees, NDArray[np.float32] | None], ...] = (
        ("text features", "captions", texts),
        ("image features", "images", images),
    )
    usable = np.ones(len(pairs), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    if lost := int((~usable).sum()):
        notes.append(f"image features: {lost:,} pairs have none: a single image, or one that cannot be read")
    if not usable.any():
        return probes, {}, notes
    for name, sees, features in halves:
        if features is not None:
            differences = standardised(features[:, 0].astype(np.float64) - features[:, 1])
            probe, few = classify(name, sees, pairs, differences, seed)
            probes.append(probe)
            notes += few
    if len(probes) == 2:
        probes.append(both("text and image features", *probes))
    places, groups = np.flatnonzero(usable), pairs.groups[usable]
    if detectors is not None:
        found = {"text detector": detectors.text(texts[usable])}
        if images is not None and detectors.image is not None:
            found["image detector"] = detectors.image(images[usable])
        return probes, _shares(pairs, places, found), [*notes, f"detectors: trained on {detectors.trained_on}"]
    chances = {"text detector": cross_validated_detector(texts[usable], groups, TEXT_EPOCHS, seed)}
    if images is not None:
        chances["image detector"] = cross_validated_detector(images[usable], groups, IMAGE_EPOCHS, seed)
    found = {name: one for name, one in chances.items() if one is not None}
    if len(found) < len(chances):
        return probes, {}, [*notes, "detectors: too few groups to cross-validate"]
    return probes, _shares(pairs, places, found), notes


def _shares(
    pairs: Pairs, places: NDArray[np.intp], chances: Mapping[str, NDArray[np.float64]]
) -> dict[str, dict[str, float]]:
    """What detectors get right of some pairs, by row. places: of these pairs among all."""
    of_texts, outcomes = chances["text detector"], {}
    if "image detector" in chances:
        outcomes = detector_outcomes(of_texts, chances["image detector"])
    elif all(len(pairs.images[place]) == 1 for place in places.tolist()):
        # One image, which is natural, so that only its caption is to be chosen.
        outcomes = {"i2t": of_texts[:, 0] < of_texts[:, 1]}
    found = {}
    for row, members in pairs.rows.items():
        if (here := np.isin(places, members)).any():
            found[row] = {name: detection_accuracy(one[here]) for name, one in chances.items()}
            found[row] |= {name: float(right[here].mean()) for name, right in outcomes.items()}
    return found
