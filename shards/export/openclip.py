"""Export to what open_clip's loaders read (`open_clip_train.data.get_wds_dataset`): one image and one text a row.

Its loader for evaluation reads these tars with webdataset 0.2.86 and 1.0; its loader for training only with 0.2.86,
since it builds on a part of webdataset that 1.0 changed (``KeyError: 'fname'`` on any tar). See docs/export.md.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from twinset.shards.export.formats import Format
from twinset.shards.kinds.pair import PAIR
from twinset.shards.read import finished_tars, of_kind, read_tar
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_writer import TarWriter


def export_openclip(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write ``SUBSET-00000.tar`` … and ``sizes.json`` into ``folder``; returns the number of pairs.

    Every pair becomes the rows ``KEY-0`` and ``KEY-1``, side by side, with fields ``txt`` and the stored image
    (``jpg``, ``png`` or ``webp``; open_clip takes them all).
    """
    sizes: dict[str, int] = {}
    for subset in subsets:
        for path, _ in finished_tars(store, subset):
            name, rows = f"{subset}-{path.rpartition('/')[2]}", 0
            with TarWriter(folder / name) as tar:
                for sample in of_kind(read_tar(store, path), PAIR, "--format openclip"):
                    twins = list(zip(sample.images.values(), sample.texts.values(), strict=True))
                    for number, (image, caption) in enumerate(twins):
                        fields = [(sample.extension, image), ("txt", caption.encode("utf-8"))]
                        tar.add_sample(f"{sample.key}-{number}", fields)
                    rows += len(twins)
            sizes[name] = rows
    (folder / "sizes.json").write_text(json.dumps(sizes, indent=1) + "\n", "ascii")
    return sum(sizes.values()) // 2


OPENCLIP_FORMAT = Format(PAIR, export_openclip)
