"""What the images of a pair give away on their own, and together with what the captions do."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.detectors import (
    IMAGE_EPOCHS,
    TEXT_EPOCHS,
    Detectors,
    cross_validated_detector,
    detection_accuracy,
    detector_outcomes,
)
from twinset.evaluation.blind_probes.pairs import Pairs
from twinset.evaluation.blind_probes.probes import MISSING, Probe, Sees, classify, signs_of
from twinset.evaluation.examples import Picture
from twinset.evaluation.features.pictures import FORMATS
from twinset.shards.media.decode import UnreadableImage, open_image

SIDE = 128  # pixels of the small image, and of the window at full size
BANDS = 8  # of spatial frequency
CELLS = 4  # a side, of the grid of mean colours
#: Pixels that are decoded at most: a file of a few bytes may claim any size.
MOST_PIXELS = 100_000_000
THREADS, AHEAD = 4, 16  # that decode; files that wait for one

Floats = NDArray[np.float64]
Numbers = tuple[float, float, Floats]  # pixels, bytes, looks


@dataclass(frozen=True, slots=True)
class Measured:
    """Numbers of the two images of every pair, (n, 2) or (n, 2, d); NaN where an image of the pair cannot be read.

    pixels: width × height. size: bytes of the file. looks: as `looks_of`.
    unreadable: pairs of which an image cannot be read.
    """

    pixels: Floats
    size: Floats
    looks: Floats
    unreadable: int

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(n,), pairs of which both images were read."""
        return np.asarray(~np.isnan(self.pixels).any(axis=1))


def measure(pairs: Sequence[tuple[Picture, ...]]) -> Measured:
    """Read and measure both images of pairs, each place of an image once."""
    found = dict(_each({picture.where: picture for pair in pairs for picture in pair}))
    size = next((len(one[2]) for one in found.values() if one is not None), 0)
    nothing = (np.nan, np.nan, np.full(size, np.nan))
    sides = [[found[picture.where] or nothing for picture in pair] for pair in pairs]
    pixels, sizes = (np.array([[side[part] for side in pair] for pair in sides], np.float64) for part in (0, 1))
    looks = np.array([[side[2] for side in pair] for pair in sides], np.float64)
    return Measured(pixels, sizes, looks, int(np.isnan(pixels).any(axis=1).sum()))


def _each(pictures: Mapping[str, Picture]) -> Iterator[tuple[str, Numbers | None]]:
    """Numbers of each picture. They are read in order, since those of one file lie behind each other."""
    waiting = deque[tuple[str, Future[Numbers | None]]]()
    with ThreadPoolExecutor(THREADS) as pool:  # decoding leaves Python's lock
        for where, picture in pictures.items():
            waiting.append((where, pool.submit(_measured, _content(picture))))
            if len(waiting) > AHEAD:
                first, done = waiting.popleft()
                yield first, done.result()
        for first, done in waiting:
            yield first, done.result()


def _content(picture: Picture) -> bytes | None:
    try:
        return picture.read()
    except (WrongUse, OSError):
        return None


def _measured(content: bytes | None) -> Numbers | None:
    if content is None:
        return None
    try:
        image = open_image(content, FORMATS, MOST_PIXELS)
    except UnreadableImage:
        return None
    return float(image.width * image.height), float(len(content)), looks_of(image.convert("RGB"))


def looks_of(image: Image.Image) -> Floats:
    """How an image looks, in numbers that neither its size nor its file decides.

    Mean and standard deviation of each colour; of saturation; the 5th and 95th percentile of brightness; mean colours
    of a grid of 4 × 4 cells; log power in 8 bands of spatial frequency, of the image at 128 × 128 pixels and of its
    middle as large at full size, where resampling and generators leave their traces.

    Args:
        image: RGB, of any size.

    Returns:
        (74,) float64.
    """
    small = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float64) / 255
    grey = small.mean(axis=2)
    saturation = small.max(axis=2) - small.min(axis=2)
    cells = small.reshape(CELLS, SIDE // CELLS, CELLS, SIDE // CELLS, 3).mean(axis=(1, 3))
    left, top = ((length - SIDE) // 2 for length in image.size)
    window = image.crop((left, top, left + SIDE, top + SIDE)) if min(image.size) >= SIDE else image.resize((SIDE, SIDE))
    return np.concatenate(
        [
            small.mean(axis=(0, 1)),
            small.std(axis=(0, 1)),
            [saturation.mean(), saturation.std(), *np.quantile(grey, (0.05, 0.95))],
            cells.ravel(),
            _spectrum(grey),
            _spectrum(np.asarray(window, np.float64).mean(axis=2) / 255),
        ]
    )


def _spectrum(grey: Floats) -> Floats:
    """Mean log power of a (SIDE, SIDE) image in rings of spatial frequency, (BANDS,), lowest first."""
    # Hann's window, else the edges of the image would fill the high bands.
    edge = np.hanning(SIDE)
    power = np.abs(np.fft.rfft2((grey - grey.mean()) * edge[:, None] * edge[None, :])) ** 2
    radius = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None, :])  # cycles a pixel
    ring = np.minimum((radius / 0.5 * BANDS).astype(int), BANDS - 1)  # the corners belong to the last
    sums = np.bincount(ring.ravel(), weights=np.log(power + 1e-12).ravel(), minlength=BANDS)
    found: Floats = sums / np.bincount(ring.ravel(), minlength=BANDS)
    return found


def standardised(differences: Floats) -> Floats:
    """Columns divided by the root of their mean square; not centred, so that a swapped pair changes sign alone.

    differences: (n, d), at least one row without NaN.
    """
    scale = np.sqrt(np.nanmean(differences**2, axis=0))
    return differences / np.where(scale > 0, scale, 1)


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
