"""Export of images with captions to what open_clip trains on: tars of WebDataset, or CSV with the images beside.

DIR/SUBSET-00000.tar …  sizes.json      --train-data "DIR/{SUBSET-00000..SUBSET-00007}.tar"
DIR/SPLIT.csv  images/                  --train-data SPLIT.csv, run in DIR
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.captioned import TabTable, caption_rows, write_image
from twinset.shards.export.formats import BySplit, Format, Shard, lift_only_folder
from twinset.shards.rows import TarWriter

KINDS = (PAIR, TEXT_PAIR, IMAGE_TEXT)
CSV_COLUMNS = ("filepath", "title", *TERMS)  # defaults of --csv-img-key and --csv-caption-key


def write_tars(shards: Iterator[Shard], folder: Path) -> None:
    """Write ``SUBSET-00000.tar`` … and ``sizes.json``, several splits into a folder each.

    A row is the fields ``txt``, ``json`` (licence, credit, source URL) and the stored image (``jpg``, ``png`` or
    ``webp``; open_clip takes them all): two rows a pair, side by side, one a caption of other samples. Negative
    captions of text pairs are left out.

    They are what open_clip's loaders read (`open_clip_train.data.get_wds_dataset`), one image and one text a row: that
    for evaluation with webdataset 0.2.86 and 1.0; that for training only with 0.2.86, since it builds on a part of
    webdataset that 1.0 changed (``KeyError: 'fname'`` on any tar). See docs/export.md.
    """
    sizes = defaultdict[str, dict[str, int]](dict)
    for shard in shards:
        name = f"{shard.subset}-{shard.number:05d}.tar"
        sizes[shard.split][name] = 0
        (folder / shard.split).mkdir(exist_ok=True)
        with TarWriter(folder / shard.split / name) as tar:
            for row in caption_rows(shard.samples):
                text, about = row.caption.encode("utf-8"), canonical_json(row.terms._asdict())
                tar.add_sample(row.key, [(row.extension, row.image), ("txt", text), ("json", about)])
                sizes[shard.split][name] += 1
    for split, counts in sizes.items():
        (folder / split / "sizes.json").write_text(json.dumps(counts, indent=1) + "\n", "ascii")
    lift_only_folder(folder)


def write_csv(shards: Iterator[Shard], folder: Path) -> None:
    """Write ``SPLIT.csv`` and ``images/``.

    A line is a row of `write_tars`. Paths count from ``folder``, where open_clip has to be started: it opens them as
    they stand.
    """
    with BySplit(lambda split: TabTable(folder / f"{split}.csv", CSV_COLUMNS)) as tables:
        for shard in shards:
            for row in caption_rows(shard.samples):
                path = write_image(row.image, folder, row.extension)
                tables[shard.split].append(path, row.caption, *row.terms)


OPENCLIP_FORMAT = Format(KINDS, write_tars)
OPENCLIP_CSV_FORMAT = Format(KINDS, write_csv)
