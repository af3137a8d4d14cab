"""Time to mine hard negatives by image, from features.

    python tests/benchmarks/bench_neighbours.py [--images N] [--captions N] [--threads N]

The 128 nearest images of each image (`generators.neighbours.nearest`), so that all captions of 128 images can be hard
negatives. The naive way compares examples, each an image with one of its captions: as many rows as captions, which are
compared with as many, and the nearest are the image's own. It is timed on a part of its rows and scaled up. Random
features of 512 numbers. The limit is 60 s; beyond it the exit code is 1.
"""

import argparse
import time

import torch
from measured import row
from torch.nn import functional

from twinset.generators.neighbours.nearest import nearest

LIMIT, PART = 60.0, 2048


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=30_000)
    parser.add_argument("--captions", type=int, default=5, help="of an image")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    images = functional.normalize(torch.randn(arguments.images, 512, generator=torch.Generator().manual_seed(0)), dim=1)
    start = time.monotonic()
    nearest(images, 128)
    by_image = time.monotonic() - start
    examples = images.repeat_interleave(arguments.captions, 0)
    start = time.monotonic()
    for first in range(0, min(PART, len(examples)), 1024):  # as training did: an example's own image is masked
        cosines = examples[first : first + 1024] @ examples.T
        own = torch.arange(first, first + len(cosines)) // arguments.captions
        cosines[own[:, None] == torch.arange(len(examples)) // arguments.captions] = -torch.inf
        cosines.topk(128 * arguments.captions, dim=1)
    by_example = (time.monotonic() - start) * len(examples) / min(PART, len(examples))
    print(f"{arguments.images:,} images with {arguments.captions} captions, {arguments.threads} threads")
    print(f"by image    {by_image:8.1f} s, limit {LIMIT:.0f} s")
    row(
        f"the 128 nearest of {arguments.images:,} images, from features, {arguments.threads} threads",
        f"of their {arguments.images * arguments.captions:,} captions' images",
        [by_example / by_image],
        f"{by_image:.1f} s, limit {LIMIT:.0f} s",
    )
    print(f"by example  {by_example:8.1f} s, scaled up from {PART:,} rows: {by_example / by_image:.1f} times as long")
    raise SystemExit(by_image > LIMIT)


if __name__ == "__main__":
    main()
