"""Export of pairs with a generated image to the Parquet of BiVLC and TROHN-Img.

BiVLC:      DIR/data/test-00000-of-00001.parquet    image, caption, negative_caption, negative_image, type, subtype
TROHN-Img:  DIR/data/train-00000-of-00001.parquet   image_id, caption, negative_caption, negative_image
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.formats import BySplit, Format, Shard

MADE_BY = "generated-pairs"  # the source whose image 1 is generated from caption 1, the negative one
IMAGES = ("image", "negative_image")
BIVLC = ("image", "caption", "negative_caption", "negative_image", "type", "subtype", *TERMS)
TROHN = ("image_id", "caption", "negative_caption", "negative_image", *TERMS)
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_generated(shards: Iterator[Shard], folder: Path, columns: Sequence[str]) -> None:
    """Write a Parquet file a split; raises `WrongUse` for pairs that do not come from ``generated-pairs``."""
    write_splits(((shard.split, [*map(_row, shard.samples)]) for shard in shards), split_schema(columns), folder)


def _row(pair: Stored[PairRecord]) -> dict[str, Any]:
    """What both layouts have of a pair, by column."""
    made_by, about = pair.json.source.dataset, pair.json.provenance
    if made_by != MADE_BY:
        raise WrongUse(
            f"{pair.key} comes from {made_by}, and this format takes pairs of {MADE_BY}, whose image 1 is generated "
            "from a negative caption; name such subsets with --only"
        )
    images = zip(IMAGES, pair.images.values(), strict=True)
    return {
        **{name: str(about[name]) for name in ("image_id", "type", "subtype")},
        **dict(zip(("caption", "negative_caption"), pair.texts.values(), strict=True)),
        **{name: {"bytes": image, "path": f"{pair.key}.{name}.{pair.extension}"} for name, image in images},
        **pair.json.terms._asdict(),
    }


def write_splits(rows: Iterable[tuple[str, list[dict[str, Any]]]], schema: pa.Schema, folder: Path) -> None:
    """Write rows, some of a split at a time, into a Parquet file a split, named as Hugging Face does."""
    (folder / "data").mkdir()
    named = "{}-00000-of-00001.parquet".format
    with BySplit(lambda split: pq.ParquetWriter(folder / "data" / named(split), schema, compression="zstd")) as files:
        for split, batch in rows:
            files[split].write_table(pa.Table.from_pylist(batch, schema))


def split_schema(columns: Sequence[str], images: Collection[str] = IMAGES) -> pa.Schema:
    """Columns, some of them images, and what `datasets` takes them for."""
    fields = [pa.field(name, _IMAGE if name in images else pa.string()) for name in columns]
    features = {
        name: {"_type": "Image"} if name in images else {"dtype": "string", "_type": "Value"} for name in columns
    }
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


BIVLC_FORMAT = Format((PAIR,), partial(write_generated, columns=BIVLC))
TROHN_IMG_FORMAT = Format((PAIR,), partial(write_generated, columns=TROHN))
