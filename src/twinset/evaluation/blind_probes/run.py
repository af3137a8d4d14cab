"""Runs the blind probes of a benchmark; features of its pairs by a dual encoder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.detectors import Detectors, detector_outcomes, told_right
from twinset.evaluation.blind_probes.document import Probes
from twinset.evaluation.blind_probes.pairs import Pairs, read_pairs
from twinset.evaluation.blind_probes.probes import caption_probes, document_of
from twinset.evaluation.examples import Benchmark, Matching
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore, default_cache, text_name
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Running

WINDOW = 512  # pairs that are prepared together
Floats = NDArray[np.float32]


def give_away(
    benchmark: Benchmark, seed: int = 0, similarities: ByFeatures | None = None, trained: Detectors | None = None
) -> Probes:
    """Probe a benchmark without looking at an image and a caption together.

    Args:
        seed: of folds.
        similarities, trained: features of a dual encoder (`features_of`), and the detectors that read them.

    Raises:
        WrongUse: the benchmark has no pairs of captions, or scikit-learn is not installed.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise WrongUse("the classifiers of blind probes need scikit-learn; pip install 'twinset[models]'") from error
    pairs = read_pairs(benchmark)
    probes, shares, notes = caption_probes(pairs, seed), dict[str, NDArray[np.float64]](), list[str]()
    if similarities is not None and trained is not None:
        texts, images = encoded(pairs, similarities)
        shares = detected(trained, texts, images)
        notes.append(f"detectors: trained on {', '.join(trained.facts['data'])}")
        if images is not None and (lost := int(np.isnan(images).any(axis=(1, 2)).sum())):
            notes.append(f"detectors: {lost:,} pairs left out: a single image, or one that cannot be read")
    return document_of(benchmark, pairs, probes, shares, notes)


def features_of(
    model: str, cache: Path | None = None, running: Running | None = None, detectors: Detectors | None = None
) -> ByFeatures:
    """The features that a model gives; they stay in the cache.

    Args:
        model: as `evaluation.scorers.kinds.open_model` takes it. cache: folder of features; the user's by default.
        detectors: that will read them. Raises `WrongUse`: they are of another model, or this is not a dual encoder.
    """
    running = running or Running()
    scorer = open_model(model, running)
    if not isinstance(scorer, DualEncoder):
        raise WrongUse(
            f"--model {model}: probes need features, and it is not a dual encoder; name open_clip:… or clip:…"
        )
    if detectors is not None and detectors.facts["encoder"] != scorer.digest():
        raise WrongUse(
            f"--model {model}: the detectors were trained on features of {detectors.facts['model']}, whose files are "
            "others; name that model, or train detectors for this one"
        )
    similarities = similarities_of(scorer, cache or default_cache(), running)
    assert isinstance(similarities, ByFeatures)
    return similarities


def encoded(pairs: Pairs, similarities: ByFeatures) -> tuple[Floats, Floats | None]:
    """Features of both captions and of both images, not normalised; memory: 16 bytes a channel and pair.

    Returns:
        Of captions (n, 2, d); of images likewise, NaN where a pair has one image or one that cannot be read, None where
        no pair has two.
    """
    texts, images = list[Floats](), dict[int, Floats]()
    for start in range(0, len(pairs), WINDOW):
        window = [_asked(pairs, place) for place in range(start, min(start + WINDOW, len(pairs)))]
        unusable = similarities.prepare(window)
        # Captions of a pair with a broken image are encoded too.
        texts += _features(similarities.store, [[text_name(text) for text in pair.captions] for pair in window])
        whole = [pair for pair in window if pair.key not in unusable and pair.images]
        names = [[similarities.pictures.name(picture) for picture in pair.images] for pair in whole]
        images |= zip((int(pair.key) for pair in whole), _features(similarities.store, names), strict=True)
    of_texts = np.stack(texts)
    if all(len(pair) == 1 for pair in pairs.images):
        return of_texts, None
    of_images = np.full_like(of_texts, np.nan)  # a dual encoder has as many channels for either
    for place, features in images.items():
        of_images[place] = features
    return of_texts, of_images


def _asked(pairs: Pairs, place: int) -> Matching:
    images = pairs.images[place]
    captions = pairs.captions[0][place], pairs.captions[1][place]
    return Matching(key=str(place), subset="", group="", images=images if len(images) == 2 else (), captions=captions)


def _features(store: FeatureStore, names: Sequence[Sequence[bytes]]) -> list[Floats]:
    """Features by name, (2, d) for each two names."""
    features = store.find(name for two in names for name in two)
    return [np.stack([features[name] for name in two]) for two in names]


def detected(detectors: Detectors, texts: Floats, images: Floats | None) -> dict[str, NDArray[np.float64]]:
    """Share (0-1) of each pair that detectors get right, (n,) by what; NaN where a pair has no features of images."""
    usable = np.ones(len(texts), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    of_texts = detectors.text(texts[usable])
    right = {"text detector": told_right(of_texts).mean(axis=1)}
    if images is None:  # the one image is natural, so that only its caption is to be chosen
        right["i2t"] = of_texts[:, 0] < of_texts[:, 1]
    elif detectors.image is not None:
        of_images = detectors.image(images[usable])
        right |= {"image detector": told_right(of_images).mean(axis=1), **detector_outcomes(of_texts, of_images)}
    shares = {name: np.full(len(texts), np.nan) for name in right}
    for name, values in right.items():
        shares[name][usable] = values
    return shares
