"""Time and memory to find the pairs that one encoder confuses among a million images, from features.

    python tests/benchmarks/bench_confused_pairs.py [--images N] [--threads N]

Random features of 512 numbers. 1,000 images have a partner that is much like them, half of them by a cosine near the
threshold. The search (`generators.confused_pairs.search`) must find the partners above the threshold, and nothing else.
The naive way multiplies the features of each row with those of all behind it, in float32, and looks for cosines above
the threshold; it is timed on a part of its rows, on one thread, and scaled up. Limits: 600 s, 6 GiB; beyond them the
exit code is 1.
"""

import argparse
import time

import numpy as np
import torch
from measured import peak_mib, row

from twinset.models.encoders.contract import Floats, unit
from twinset_extras.confused_pairs.search import alike, cosines

SECONDS, GIB, PART, ABOVE, PARTNERS, WIDTH = 600.0, 6.0, 1024, 0.95, 1000, 512


def some_features(images: int) -> Floats:
    """Random ones; the last `PARTNERS` are made of the first, with cosines of 0.9 to 1."""
    drawn = np.random.default_rng(0)
    features = np.empty((images, WIDTH), np.float32)
    for start in range(0, images, 1 << 14):
        some = features[start : start + (1 << 14)]
        some[:] = unit(drawn.standard_normal(some.shape, dtype=np.float32))
    wanted = np.linspace(0.9, 1, PARTNERS, dtype=np.float32)[:, None]
    features[-PARTNERS:] = unit(wanted * features[:PARTNERS] + np.sqrt(1 - wanted**2) * features[-PARTNERS:])
    return features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    features = some_features(arguments.images)
    start, before = time.monotonic(), time.process_time()
    pairs, _ = alike(features, ABOVE, arguments.threads)
    took, used = time.monotonic() - start, time.process_time() - before
    peak = peak_mib() / 1024
    partners = np.stack([np.arange(PARTNERS), np.arange(PARTNERS) + arguments.images - PARTNERS], axis=1)
    same = np.array_equal(pairs, partners[cosines(features, partners) > ABOVE])
    torch.set_num_threads(1)
    every, before = torch.from_numpy(features), time.process_time()
    for first in range(0, PART, 64):
        (every[first : first + 64] @ every[first:].T > ABOVE).nonzero()
    naive = (
        (time.process_time() - before) * arguments.images / PART / 2
    )  # on average half of the others lie behind a row
    print(f"{arguments.images:,} images, {arguments.threads} threads: {len(pairs):,} pairs; those expected: {same}")
    row(
        f"all cosines above {ABOVE:g} of {arguments.images:,} images, CPU time",
        f"all products, scaled up from {PART:,} rows",
        [naive / used],
        f"{used:.0f} s of CPU; {took:.0f} s, limit {SECONDS:.0f} s; {peak:.2f} GiB, limit {GIB:.0f} GiB",
    )
    raise SystemExit(not same or took > SECONDS or peak > GIB)


if __name__ == "__main__":
    main()
