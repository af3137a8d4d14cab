"""Trains detectors of natural and synthetic captions and images (BiVLC, section 5 and appendix E)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset, Part, open_benchmarks
from twinset.evaluation.blind_probes.detectors import (
    HALVES,
    Detector,
    Detectors,
    detection_accuracy,
    train_detector,
    write_detectors,
)
from twinset.evaluation.blind_probes.pairs import Pairs, read_pairs
from twinset.evaluation.blind_probes.run import encoded, features_of
from twinset.evaluation.examples import Benchmark, Picture
from twinset.evaluation.features.pictures import Pictures, Unusable
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.report.distributions import Panel
from twinset.models.encoders.contract import Running
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.examples.batches import MAX_BROKEN
from twinset.training.examples.built import BuiltSubset
from twinset.training.examples.contracts import data_place
from twinset.training.examples.ordering import held_out
from twinset.training.report.write import About, write_pages
from twinset.training.runs.identity import SETTINGS, bind, check_folder

#: Of what is trained: raised when the same settings and features give other detectors.
VERSION = 1
_LOG = logging.getLogger("twinset")
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


def train_detectors(
    settings: DetectorSettings, out: Path, cache: Path | None = None, report: bool = True
) -> TrainedDetectors:
    """Train detectors and write them where `evaluation.blind_probes.detectors.read_detectors` reads them.

    Features stay in the cache of evaluation: a run that was killed encodes the rest. The layers take seconds, and the
    same settings, data and features give the same bytes.

    Args:
        out: folder of the detectors.
        cache: folder of features; the user's own by default.
        report: whether ``report.html`` is written, beside the card and ``data.json``.

    Raises:
        WrongUse: the model is not a dual encoder, the data holds no pairs or too few groups, or ``out`` holds something
            else, such as detectors of other settings.
        BuildFailed: the data were rebuilt while they were read.
    """
    check_folder(out)
    benchmarks = [one for place in settings.data for one in _pairs_of(place)]
    data = {"data": [fact for _, benchmark in benchmarks for fact in _facts(benchmark)]}
    running = Running(settings.device, settings.encode_batch, settings.threads)
    similarities = features_of(settings.model, cache, running)
    encoder, runtime = similarities.encoder.digest(), running.runtime()
    chosen = {name: value for name, value in settings.facts().items() if name not in ("model", "data")}
    digests = {"data": [one["digest"] for one in data["data"]]}
    identity = {"version": VERSION, "settings": chosen, "model": encoder, "data": digests, "runtime": runtime}
    if (out / SETTINGS).exists():  # other detectors are refused before anything is encoded
        bind(out, settings, identity, runtime)
    texts, images = _halves(benchmarks, similarities)
    if data != {"data": [fact for _, benchmark in benchmarks for fact in _facts(benchmark)]}:
        raise BuildFailed(f"{', '.join(settings.data)}: rebuilt while it was read; train again into a new --out")
    trained: dict[str, Detector] = {}
    facts: dict[str, Any] = {}
    panels: list[Panel] = []
    for half, found, epochs in zip(HALVES, (texts, images), (settings.text_epochs, settings.image_epochs), strict=True):
        if found is not None:
            trained[half], facts[half], curves = _train(found, epochs, settings)
            panels += _panels(half, curves)
    detectors = Detectors(
        trained["text"],
        trained.get("image"),
        {
            **settings.facts(),
            "encoder": encoder,
            "datasets": {name: one.digest() for name, one in benchmarks},
            "halves": facts,
        },
    )
    bind(out, settings, identity, runtime)
    written = write_detectors(detectors, out)
    result = {
        "identity": digest(identity), "runtime": runtime, "sha256": written, "encoder": encoder, "halves": facts,
    }  # fmt: skip
    pages = "detectors_card.md.j2", "detectors.html.j2"
    write_pages(
        out, settings, data, result, _about(settings), panels if report else None, *pages, {"left_out": [], "idle": ""}
    )
    accuracy = {half: one["test_accuracy"] for half, one in facts.items()}
    return TrainedDetectors(out, detectors, accuracy, digest(written))


def _facts(benchmark: Benchmark) -> list[dict[str, Any]]:
    """Each subset with its shards, as `training.examples.example_set.ExampleSet.facts`."""
    assert isinstance(benchmark, BuiltDataset)
    found = []
    for subset in benchmark.subsets:
        origin = BuiltSubset(benchmark.store, subset, None)
        about = origin.facts()
        examples = sum(shard["samples"] for shard in about["shards"])
        found.append({**about, "digest": origin.digest(), "examples": examples, "copies": 1})
    return found


def _panels(half: str, curves: Sequence[tuple[float, float]]) -> list[Panel]:
    """Panels of a detector. curves: of each epoch, its mean loss and its validation accuracy (0-1)."""
    epochs, values = np.arange(1.0, len(curves) + 1), np.array(curves)
    named = (("loss", values[:, 0]), ("validation: percent", 100 * values[:, 1]))
    return [Panel(f"{half} detector, {title}", "epoch", epochs, {half: one}) for title, one in named]


def _about(settings: DetectorSettings) -> About:
    return About(
        what=f"Detectors of the first and the second half of pairs, on features of {settings.model}",
        model=settings.model,
        best_by="accuracy",
        figures="Percent of single captions or images that are told right; 50 is chance. Whole groups are held out to "
        "choose the epoch (validation), and others to test.",
        recipe="that of BiVLC's released code",
        published=DetectorSettings(data=settings.data).model_dump(mode="json"),
    )


def _pairs_of(text: str) -> list[tuple[str, Benchmark]]:
    """The pairs of a place, those of two images and those of one apart, each with a name."""
    place = data_place(text)
    if place.pattern:
        raise WrongUse(
            f"{text}: detectors need pairs or text pairs, which such tars do not hold; name a dataset of them"
        )
    if place.copies != 1:
        raise WrongUse(f"{text}: repeats a dataset, which detectors have no use for; name it once")
    subsets = [place.subset] if place.subset else []
    opened = open_benchmarks("twinset", place.root, subsets)
    parts = [one for one in opened if not isinstance(one, Part) or one.kind in ("pair", "text-pair")]
    for part in parts:
        assert isinstance(part, BuiltDataset)
        part.every_split = True
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
            lacking = np.asarray(np.isnan(of_images).any(axis=(1, 2)), np.bool_)
            _check_readable(name, pairs, lacking, similarities)
            whole = np.flatnonzero(~lacking)
            if len(whole):
                images.append(_Halves(of_images[whole], [groups[place] for place in whole.tolist()]))
    return _joined(texts), _joined(images) if images else None


def _check_readable(name: str, pairs: Pairs, lacking: NDArray[np.bool_], similarities: ByFeatures) -> None:
    """Warn of images that cannot be read, and raise `BuildFailed` for more than `MAX_BROKEN` of the pairs.

    Args:
        lacking: which pairs have no features of both images; all of those that have one image.
    """
    broken = [place for place in np.flatnonzero(lacking).tolist() if len(pairs.images[place]) == 2]
    if not broken:
        return
    first = _problem(pairs.images[broken[0]], similarities.pictures)
    said = f"{name}: {len(broken)} of {len(pairs)} pairs have an image that cannot be read; the first is {first}"
    if len(broken) > MAX_BROKEN * len(pairs):
        raise BuildFailed(
            f"{said}. At most {MAX_BROKEN:.1%} may be: fetch these tars again, or run their build again, and train then"
        )
    _LOG.warning("left out of training: %s", said)


def _problem(shown: Sequence[Picture], pictures: Pictures) -> str:
    for picture in shown:
        try:
            pictures.name(picture)
        except Unusable as error:
            return f"{error.where}: {error.reason} ({error.problem})"
    return ", ".join(picture.where for picture in shown)


def _joined(parts: Sequence[_Halves]) -> _Halves:
    return _Halves(np.concatenate([one.features for one in parts]), [group for one in parts for group in one.groups])


def _train(
    found: _Halves, epochs: int, settings: DetectorSettings
) -> tuple[Detector, dict[str, Any], list[tuple[float, float]]]:
    """A detector of one half; what is recorded of it, its sizes and accuracies (0-1); loss and accuracy by epoch."""
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
    curves = list[tuple[float, float]]()
    detector = train_detector(
        features["train"], features["validation"], epochs, settings.seed, settings.rate,
        lambda loss, accuracy: curves.append((loss, accuracy)),
    )  # fmt: skip
    facts: dict[str, Any] = {f"{name}_pairs": len(places) for name, places in parts.items()}
    facts |= {f"{name}_accuracy": detection_accuracy(detector(some)) for name, some in features.items()}
    return detector, facts | {"best_epoch": 1 + int(np.argmax([accuracy for _, accuracy in curves]))}, curves
