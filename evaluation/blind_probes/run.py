"""Runs the blind probes of a benchmark: the cheap ones always, the others on demand."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.blind_probes.detectors import Detectors
from twinset.evaluation.blind_probes.image_probes import both, feature_probes, image_probes
from twinset.evaluation.blind_probes.pairs import Pairs, read_pairs
from twinset.evaluation.blind_probes.probes import GivenAway, caption_probes, language_model_probe
from twinset.evaluation.examples import Benchmark
from twinset.shards.storage.whole_file import whole_file

#: Features of captions, (n, 2, d), and of images, likewise or None; of the pairs of a benchmark, not normalised.
Encode = Callable[[Pairs], tuple[NDArray[np.float32], NDArray[np.float32] | None]]


def give_away(
    benchmark: Benchmark,
    images: bool = False,
    language_model: str | None = None,
    encode: Encode | None = None,
    seed: int = 0,
    trained: Detectors | None = None,
) -> GivenAway:
    """Probe a benchmark without looking at an image and a caption together.

    Args:
        benchmark: that is read.
        images: whether the images of pairs of two are read and probed; some 100 a second.
        language_model: that scores captions, such as ``smollm2``; some 10 captions a second on a core.
        encode: gives features of a dual encoder, for classifiers and detectors on these.
        seed: of folds and of first weights.
        trained: detectors for these features; without them, detectors are cross-validated on the benchmark itself.

    Raises:
        WrongUse: the benchmark has no pairs of captions, or a model cannot be used.
    """
    pairs = read_pairs(benchmark)
    probes, notes = caption_probes(pairs, seed)
    text = probes[-1]
    if language_model is not None:
        probes.append(language_model_probe(pairs, language_model))
    else:
        notes.append("language model: not asked for")
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
    return GivenAway(benchmark.name, benchmark.title, pairs, probes, notes, detectors)


def write_probes(found: GivenAway, out: Path) -> Path:
    """Write what was found where the report of a run reads it, ``OUT/probes/BENCHMARK.json``; returns the path."""
    path = out / "probes" / f"{found.name}.json"
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(found.as_json(), indent=2) + "\n", "utf-8")
    return path
