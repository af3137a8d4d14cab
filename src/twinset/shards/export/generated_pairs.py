"""Export of pairs with a generated image to the Parquet of BiVLC and TROHN-Img.

BiVLC:      DIR/data/test-00000-of-00001.parquet    image, caption, negative_caption, negative_image, type, subtype
TROHN-Img:  DIR/data/train-00000-of-00001.parquet   image_id, caption, negative_caption, negative_image
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.formats import Format
from twinset.shards.read import finished_tars, of_kind, read_tar
from twinset.shards.storage.store import Store

MADE_BY = "generated-pairs"  # the source whose image 1 is generated from caption 1, the negative one
IMAGES = ("image", "negative_image")
BIVLC = ("image", "caption", "negative_caption", "negative_image", "type", "subtype", *TERMS)
TROHN = ("image_id", "caption", "negative_caption", "negative_image", *TERMS)
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def export_generated(store: Store, subsets: Sequence[str], folder: Path, columns: Sequence[str], format: str) -> int:
    """Write a Parquet file a split into ``folder``; returns the number of pairs.

    Raises `WrongUse` for pairs that do not come from ``generated-pairs``.
    """

    def tables() -> Iterator[tuple[str, pa.Table]]:
        schema = split_schema(columns)
        for subset in subsets:
            for tar, _ in finished_tars(store, subset):
                samples = of_kind(read_tar(store, tar), PAIR, f"--format {format}")
                for split, rows in _by_split(samples, columns, format).items():
                    yield split, pa.Table.from_pylist(rows, schema)

    return write_splits(tables(), folder)


def write_splits(tables: Iterable[tuple[str, pa.Table]], folder: Path) -> int:
    """Write tables of one schema into a Parquet file a split, named as Hugging Face does; returns how many rows."""
    count, writers = 0, dict[str, pq.ParquetWriter]()
    with ExitStack() as files:
        for split, table in tables:
            if split not in writers:
                path = folder / "data" / f"{split}-00000-of-00001.parquet"
                path.parent.mkdir(exist_ok=True)
                writers[split] = files.enter_context(pq.ParquetWriter(path, table.schema, compression="zstd"))
            writers[split].write_table(table)
            count += len(table)
    return count


def _by_split(
    samples: Iterator[Stored[PairRecord]], columns: Sequence[str], format: str
) -> Mapping[str, list[dict[str, Any]]]:
    """The rows of a tar, which memory holds, by split."""
    found: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        if sample.json.source.dataset != MADE_BY:
            raise WrongUse(
                f"{sample.key} comes from {sample.json.source.dataset}, and --format {format} takes pairs of "
                f"{MADE_BY}, whose image 1 is generated from a negative caption; name such subsets with --only"
            )
        about = sample.json.provenance
        values: dict[str, Any] = {
            **{name: str(about[name]) for name in ("image_id", "type", "subtype")},
            "caption": sample.texts["caption0"],
            "negative_caption": sample.texts["caption1"],
            **sample.json.terms.columns,
        }
        for name, role in zip(IMAGES, PAIR.images, strict=True):
            values[name] = {"bytes": sample.images[role], "path": f"{sample.key}.{name}.{sample.extension}"}
        found.setdefault(sample.json.split, []).append({name: values[name] for name in columns})
    return found


def split_schema(columns: Sequence[str], images: Collection[str] = IMAGES) -> pa.Schema:
    """Columns, some of them images, and what `datasets` takes them for."""
    fields = [pa.field(name, _IMAGE if name in images else pa.string()) for name in columns]
    features = {
        name: {"_type": "Image"} if name in images else {"dtype": "string", "_type": "Value"} for name in columns
    }
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


BIVLC_FORMAT = Format(PAIR, partial(export_generated, columns=BIVLC, format="bivlc"))
TROHN_IMG_FORMAT = Format(PAIR, partial(export_generated, columns=TROHN, format="trohn-img"))
