"""Runs the blind probes of a benchmark, the cheap ones always, others on demand; gives them a model's features."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.detectors import Detectors
from twinset.evaluation.blind_probes.image_probes import both, feature_probes, image_probes
from twinset.evaluation.blind_probes.pairs import Pairs, read_pairs
from twinset.evaluation.blind_probes.probes import GivenAway, caption_probes, unpaired_words
from twinset.evaluation.examples import Benchmark, Matching
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore, default_cache, text_name
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Running
from twinset.shards.storage.whole_file import whole_file

#: Features of captions, (n, 2, d), and of images, likewise or None; of the pairs of a benchmark, not normalised.
Encode = Callable[[Pairs], tuple[NDArray[np.float32], NDArray[np.float32] | None]]


def give_away(
    benchmark: Benchmark,
    images: bool = False,
    encode: Encode | None = None,
    seed: int = 0,
    trained: Detectors | None = None,
) -> GivenAway:
    """Probe a benchmark without looking at an image and a caption together.

    Args:
        benchmark: that is read.
        images: whether the images of pairs of two are read and probed; some 100 a second.
        encode: gives features of a dual encoder, for classifiers and detectors on these.
        seed: of folds and of first weights.
        trained: detectors for these features; without them, detectors are cross-validated on the benchmark itself.

    Raises:
        WrongUse: the benchmark has no pairs of captions, or a model cannot be used.
    """
    pairs = read_pairs(benchmark)
    probes, notes = caption_probes(pairs, seed)
    text = probes[-1]
    if images:
        of_images, more = image_probes(pairs, seed)
        probes, notes = [*probes, *of_images], [*notes, *more]
        if of_images and of_images[-1].name == "image classifier":
            probes.append(both("both classifiers", text, of_images[-1]))
    else:
        notes.append("images: not asked for")
    detectors: Mapping[str, Mapping[str, float]] = {}
    if encode is not None:
        of_features, detectors, more = feature_probes(pairs, *encode(pairs), seed, trained)
        probes, notes = [*probes, *of_features], [*notes, *more]
    words = unpaired_words(pairs, seed)
    return GivenAway(benchmark.name, benchmark.title, pairs, probes, notes, detectors, words)


def write_probes(found: GivenAway, out: Path) -> Path:
    """Write what was found where the report of a run reads it, ``OUT/probes/BENCHMARK.json``; returns the path."""
    path = out / "probes" / f"{found.name}.json"
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(found.as_json(), indent=2) + "\n", "utf-8")
    return path


WINDOW = 512  # pairs that are prepared together

Floats = NDArray[np.float32]


def encoder_of(
    model: str, cache: Path | None = None, running: Running | None = None, detectors: Detectors | None = None
) -> Encode:
    """What encodes pairs with a model; what it gives stays in the cache.

    Args:
        model: as `evaluation.scorers.kinds.open_model` takes it.
        cache: folder of features; the user's own by default.
        detectors: that will read the features.

    Raises:
        WrongUse: there is no such model, it is not a dual encoder, or the detectors are not for it.
    """
    similarities = features_of(model, cache, running)
    if detectors is not None:
        detectors.check_encoder(model, similarities.encoder.digest())

    return lambda pairs: encoded(pairs, similarities)


def features_of(model: str, cache: Path | None = None, running: Running | None = None) -> ByFeatures:
    """The features that a model gives, with their cache; arguments and errors as of `encoder_of`."""
    running = running or Running()
    scorer = open_model(model, running)
    if not isinstance(scorer, DualEncoder):
        raise WrongUse(
            f"--model {model}: probes need features, and it is not a dual encoder; name open_clip:… or clip:…"
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
    store, two = similarities.store, any(len(images) == 2 for images in pairs.images)
    texts, images = list[Floats](), list[Floats | None]()
    for start in range(0, len(pairs), WINDOW):
        window = [_asked(pairs, place) for place in range(start, min(start + WINDOW, len(pairs)))]
        unusable = similarities.prepare(window)
        # Captions of a pair with a broken image are encoded too.
        texts += _features(store, [[text_name(text) for text in one.captions] for one in window])
        whole = [one for one in window if one.key not in unusable and one.images]
        names = [[similarities.pictures.name(picture) for picture in one.images] for one in whole]
        found = dict(zip((one.key for one in whole), _features(store, names), strict=True))
        images += [found.get(one.key) for one in window]
    shape = next((one.shape for one in images if one is not None), None)
    if not two or shape is None:
        return np.stack(texts), None if not two else np.full((len(pairs), 2, 1), np.nan, np.float32)
    nothing = np.full(shape, np.nan, np.float32)
    return np.stack(texts), np.stack([nothing if one is None else one for one in images])


def _asked(pairs: Pairs, place: int) -> Matching:
    images = pairs.images[place]
    captions = pairs.captions[0][place], pairs.captions[1][place]
    return Matching(key=str(place), subset="", group="", images=images if len(images) == 2 else (), captions=captions)


def _features(store: FeatureStore, names: Sequence[Sequence[bytes]]) -> list[Floats]:
    """Features by name, (2, d) for each two names."""
    found = store.find(name for two in names for name in two)
    return [np.stack([found[name] for name in two]) for two in names]
