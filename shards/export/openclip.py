"""Export to what open_clip's loader reads (`open_clip_train.data.get_wds_dataset`): one image and one text a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from shards.kinds.reading import pairs
from shards.read import read_receipts, read_tar
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_writer import TarWriter


def export_openclip(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write ``SUBSET-00000.tar`` … and ``sizes.json`` into ``folder``; returns the number of pairs.

    Every pair becomes the rows ``KEY-0`` and ``KEY-1``, side by side, with fields ``txt`` and the stored image
    (``jpg``, ``png`` or ``webp``; open_clip takes them all).
    """
    sizes: dict[str, int] = {}
    for subset in subsets:
        for receipt in read_receipts(store, subset):
            if not receipt.tar_size:
                continue
            name, rows = f"{subset}-{receipt.shard:05d}.tar", 0
            with TarWriter(folder / name) as tar:
                samples = read_tar(store, layout.tar(subset, receipt.split, receipt.shard))
                for sample in pairs(samples, "--format openclip"):
                    twins = ((sample.image0, sample.caption0), (sample.image1, sample.caption1))
                    for number, (image, caption) in enumerate(twins):
                        fields = [(sample.extension, image), ("txt", caption.encode("utf-8"))]
                        tar.add_sample(f"{sample.key}-{number}", fields)
                    rows += len(twins)
            sizes[name] = rows
    (folder / "sizes.json").write_text(json.dumps(sizes, indent=1) + "\n", "ascii")
    return sum(sizes.values()) // 2
