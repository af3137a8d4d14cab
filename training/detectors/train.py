"""Trains detectors of natural and synthetic captions and images (BiVLC, section 5 and appendix E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.blind_probes.detector_files import HALVES, Detectors, write_detectors
from evaluation.blind_probes.detectors import Detector, detection_accuracy, train_detector
from evaluation.blind_probes.features import encoded, features_of
from evaluation.blind_probes.pairs import read_pairs
from evaluation.dataset_parts import Part, open_benchmarks
from evaluation.examples import Benchmark
from evaluation.features.similarities import ByFeatures
from evaluation.scorers.contract import Running
from manifests.canonical import digest
from manifests.errors import WrongUse
from training.detectors.settings import DetectorSettings
from training.examples.held_out import held_out
from training.examples.places import data_place

LEAST_GROUPS = 3  # one each to train on, to choose the epoch by, and to test with


@dataclass(frozen=True, slots=True)
class TrainedDetectors:
    """What `train_detectors` wrote.

    accuracy: shares (0-1) of held-out halves that are classified correctly, by ``text`` and ``image``. digest: of the
    files of weights.
    """

    folder: Path
    detectors: Detectors
    accuracy: dict[str, float]
    digest: str


@dataclass(frozen=True, slots=True)
class _Halves:
    """Features of pairs, natural first, (n, 2, d) not normalised, and the group of each."""

    features: NDArray[np.float32]
    groups: list[str]


def train_detectors(settings: DetectorSettings, out: Path, cache: Path | None = None) -> TrainedDetectors:
    """Train detectors and write them where `evaluation.blind_probes.detector_files.read_detectors` reads them.

    Features stay in the cache of evaluation: a run that was killed encodes the rest. The layers take seconds, and the
    same settings, data and features give the same bytes.

    Args:
        out: folder of the detectors.
        cache: folder of features; the user's own by default.

    Raises:
        WrongUse: the model is not a dual encoder, or the data holds no pairs or too few groups.
    """
    benchmarks = [one for place in settings.data for one in _pairs_of(place)]
    similarities = features_of(settings.model, cache, Running(settings.device, settings.encode_batch, settings.threads))
    try:
        texts, images = _halves(benchmarks, similarities)
    finally:
        similarities.close()
    trained: dict[str, Detector] = {}
    facts: dict[str, Any] = {}
    for half, found, epochs in zip(HALVES, (texts, images), (settings.text_epochs, settings.image_epochs), strict=True):
        if found is not None:
            trained[half], facts[half] = _train(found, epochs, settings)
    detectors = Detectors(
        trained["text"],
        trained.get("image"),
        {
            **settings.facts(),
            "encoder": similarities.encoder.digest(),
            "datasets": {name: one.digest() for name, one in benchmarks},
            "halves": facts,
        },
    )
    written = write_detectors(detectors, out)
    accuracy = {half: one["test_accuracy"] for half, one in facts.items()}
    return TrainedDetectors(out, detectors, accuracy, digest(written))


def _pairs_of(text: str) -> list[tuple[str, Benchmark]]:
    """The pairs of a place, those of two images and those of one apart, each with a name."""
    place = data_place(text)
    if place.copies != 1:
        raise WrongUse(f"{text}: repeats a dataset, which detectors have no use for; name it once")
    subsets = [place.subset] if place.subset else []
    opened = open_benchmarks("twinset", place.root, subsets)
    parts = [one for one in opened if not isinstance(one, Part) or one.kind in ("pair", "text-pair")]
    if not parts:
        raise WrongUse(f"{text}: holds no pairs or text pairs to train detectors on; name a dataset that does")
    return [(f"{text} ({one.name})" if len(parts) > 1 else text, one) for one in parts]


def _halves(benchmarks: Sequence[tuple[str, Benchmark]], similarities: ByFeatures) -> tuple[_Halves, _Halves | None]:
    """Features of all captions, and of the images of pairs that have two; memory: 16 bytes a channel and pair."""
    texts, images = list[_Halves](), list[_Halves]()
    for name, benchmark in benchmarks:
        pairs = read_pairs(benchmark)
        of_texts, of_images = encoded(pairs, similarities)
        groups = [f"{name} {group}" for group in pairs.groups.tolist()]
        texts.append(_Halves(of_texts, groups))
        if of_images is not None:
            whole = np.flatnonzero(~np.isnan(of_images).any(axis=(1, 2)))
            if len(whole):
                images.append(_Halves(of_images[whole], [groups[place] for place in whole.tolist()]))
    return _joined(texts), _joined(images) if images else None


def _joined(parts: Sequence[_Halves]) -> _Halves:
    return _Halves(np.concatenate([one.features for one in parts]), [group for one in parts for group in one.groups])


def _train(found: _Halves, epochs: int, settings: DetectorSettings) -> tuple[Detector, dict[str, Any]]:
    """A detector of one half, and what is recorded of it: its sizes and accuracies (0-1)."""
    count = len(set(found.groups))
    if count < LEAST_GROUPS:
        raise WrongUse(
            f"{', '.join(settings.data)}: {count} groups, and detectors need {LEAST_GROUPS}: to train on, to choose "
            "the best epoch by, and to test with; name more data"
        )
    test = held_out(found.groups, settings.held_out, settings.seed, "test")
    rest = np.flatnonzero(~test)
    chosen = held_out([found.groups[place] for place in rest.tolist()], settings.held_out, settings.seed)
    parts = {"train": rest[~chosen], "validation": rest[chosen], "test": np.flatnonzero(test)}
    features = {name: found.features[places] for name, places in parts.items()}
    detector = train_detector(features["train"], features["validation"], epochs, settings.seed, settings.rate)
    facts: dict[str, Any] = {f"{name}_pairs": len(places) for name, places in parts.items()}
    return detector, facts | {f"{name}_accuracy": detection_accuracy(detector(some)) for name, some in features.items()}
