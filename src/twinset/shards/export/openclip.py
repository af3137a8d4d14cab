"""Export of images with captions to what open_clip trains on: tars of WebDataset, or CSV with the images beside.

DIR/SUBSET-00000.tar …  sizes.json      --train-data "DIR/{SUBSET-00000..SUBSET-00007}.tar"
DIR/SPLIT.csv  images/                  --train-data SPLIT.csv, run in DIR
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.captioned import TabTable, caption_rows, image_file
from twinset.shards.export.formats import Format
from twinset.shards.read import pictured_tars
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import TarWriter

KINDS = (PAIR, TEXT_PAIR, IMAGE_TEXT)
CSV_COLUMNS = ("filepath", "title", *TERMS)  # defaults of --csv-img-key and --csv-caption-key


def export_openclip(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write ``SUBSET-00000.tar`` … and ``sizes.json`` into ``folder``; returns the number of samples.

    A row is the fields ``txt``, ``json`` (licence, credit, source URL) and the stored image (``jpg``, ``png`` or
    ``webp``; open_clip takes them all): two rows a pair, side by side, one a caption of other samples. Negative
    captions of text pairs are left out. A subset of several splits is written into a folder a split.

    They are what open_clip's loaders read (`open_clip_train.data.get_wds_dataset`), one image and one text a row: that
    for evaluation with webdataset 0.2.86 and 1.0; that for training only with 0.2.86, since it builds on a part of
    webdataset that 1.0 changed (``KeyError: 'fname'`` on any tar). See docs/export.md.
    """
    sizes, count = dict[Path, dict[str, int]](), 0
    for subset in subsets:
        tars = list(pictured_tars(store, subset, "--format openclip"))
        several = len({split for _, split, _ in tars}) > 1
        for path, split, kept in tars:
            below = folder / split if several else folder
            below.mkdir(exist_ok=True)
            name, rows = f"{subset}-{path.rpartition('/')[2]}", 0
            with TarWriter(below / name) as tar:
                for row in caption_rows(store, path, KINDS, "--format openclip"):
                    about = canonical_json(row.terms.columns)
                    tar.add_sample(
                        row.key, [(row.extension, row.image), ("txt", row.caption.encode("utf-8")), ("json", about)]
                    )
                    rows += 1
            sizes.setdefault(below, {})[name] = rows
            count += kept
    for below, found in sizes.items():
        (below / "sizes.json").write_text(json.dumps(found, indent=1) + "\n", "ascii")
    return count


def export_openclip_csv(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write ``SPLIT.csv`` and ``images/`` into ``folder``; returns the number of samples.

    A line is a row of `export_openclip`. Paths count from ``folder``, where open_clip has to be started: it opens them
    as they stand.
    """
    count = 0
    with ExitStack() as files:
        tables = dict[str, TabTable]()
        for subset in subsets:
            for tar, split, kept in pictured_tars(store, subset, "--format openclip-csv"):
                if split not in tables:
                    tables[split] = files.enter_context(TabTable(folder / f"{split}.csv", CSV_COLUMNS))
                for row in caption_rows(store, tar, KINDS, "--format openclip-csv"):
                    tables[split].append(image_file(row, folder), row.caption, *row.terms)
                count += kept
    return count


OPENCLIP_FORMAT = Format(KINDS, export_openclip)
OPENCLIP_CSV_FORMAT = Format(KINDS, export_openclip_csv)
