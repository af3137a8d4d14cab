"""What numbers tell of an image without knowing what it shows: colours, sharpness, noise, and its file."""

import io
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinset.evaluation.examples import Picture
from twinset.manifests.errors import WrongUse

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
        with Image.open(io.BytesIO(content)) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                return None
            return float(width * height), float(len(content)), looks_of(image.convert("RGB"))
    except MemoryError:
        raise
    except Exception:  # Pillow's formats raise SyntaxError, struct.error, ValueError, and their own
        return None


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
