"""Export of edited pairs with their failed edits: what preference training of an image editor reads.

DIR/data/SPLIT-00000-of-00001.parquet   prompt, image, chosen, rejected, caption, negative_caption, reason
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.manifests.errors import WrongUse
from twinset.manifests.licences.terms import TERMS
from twinset.shards.export.formats import Format
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.kinds.kind import Stored
from twinset.shards.kinds.pair import PAIR, PairRecord
from twinset.shards.read import of_kind, pictured_tars, read_tar
from twinset.shards.storage.store import Store

USE = "--format edit-preferences"
PICTURES = ("image", "chosen", "rejected")
COLUMNS = ("prompt", *PICTURES, "caption", "negative_caption", "reason", *TERMS)


def export_edits(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a Parquet file a split with the images inside; returns the number of rows.

    A row is a pair with a failed edit: the photo, the instruction, the edit that was proved, and the one that was not.
    Raises `WrongUse` for pairs that say nothing of failed edits.
    """

    def tables() -> Iterator[tuple[str, pa.Table]]:
        schema = split_schema(COLUMNS, PICTURES)
        for subset in subsets:
            for tar, split, _ in pictured_tars(store, subset, USE):
                pairs = of_kind(read_tar(store, tar), PAIR, USE)
                rows = [row for pair in pairs if (row := _row(pair))]
                yield split, pa.Table.from_pylist(rows, schema)

    if count := write_splits(tables(), folder):
        return count
    raise WrongUse(f"{', '.join(subsets)}: every edit was proved at once or not at all, so there is no worse answer")


def _row(pair: Stored[PairRecord]) -> dict[str, Any] | None:
    about: Any = pair.json.provenance
    if "failed" not in about:
        raise WrongUse(
            f"{pair.key} comes from {pair.json.source.dataset} and says nothing of failed edits; {USE} "
            "takes pairs of edited-photos with tries of 2 or more: name such subsets with --only"
        )
    if not about["failed"]["image"]:
        return None
    pictures = (*pair.images.values(), base64.b64decode(about["failed"]["image"]))
    return {
        "prompt": about["instruction"],
        **{
            name: {"bytes": content, "path": f"{pair.key}.{name}.{pair.extension}"}
            for name, content in zip(PICTURES, pictures, strict=True)
        },
        "caption": pair.texts["caption0"],
        "negative_caption": pair.texts["caption1"],
        "reason": about["failed"]["reason"],
        **pair.json.terms.columns,
    }


EDIT_PREFERENCES_FORMAT = Format(PAIR, export_edits)
