"""Export of edited pairs with their failed edits: what preference training of an image editor reads.

DIR/data/SPLIT-00000-of-00001.parquet   prompt, image, chosen, rejected, caption, negative_caption, reason
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.formats import Format
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.fields import REMEDY
from twinset.shards.read import of_kind, pictured_tars, read_tar
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar

USE = "--format edit-preferences"
PICTURES = ("image", "chosen", "rejected")
COLUMNS = ("prompt", *PICTURES, "caption", "negative_caption", "reason", *TERMS)


def export_edits(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a Parquet file a split with the images inside; returns the number of rows.

    A row is a pair with a failed edit: the photo, the instruction, the edit that was proved, and the one that was not.
    Raises `WrongUse` for pairs that say nothing of failed edits, and where there are pairs and all have none.
    """
    read = 0

    def tables() -> Iterator[tuple[str, pa.Table]]:
        nonlocal read
        schema = split_schema(COLUMNS, PICTURES)
        for subset in subsets:
            for tar, split, _ in pictured_tars(store, subset, USE):
                rows = [_row(pair) for pair in of_kind(read_tar(store, tar), PAIR, USE)]
                read += len(rows)
                yield split, pa.Table.from_pylist([row for row in rows if row], schema)

    if (count := write_splits(tables(), folder)) or not read:
        return count
    raise WrongUse(f"{', '.join(subsets)}: every edit was proved at once or not at all, so there is no worse answer")


def _row(pair: Stored[PairRecord]) -> dict[str, Any] | None:
    about: Any = pair.json.provenance
    if "failed" not in about:
        raise WrongUse(
            f"{pair.key} comes from {pair.json.source.dataset} and says nothing of failed edits; {USE} "
            "takes pairs of edited-photos with tries of 2 or more: name such subsets with --only"
        )
    try:
        prompt, reason, image = about["instruction"], about["failed"]["reason"], about["failed"]["image"]
        failed = base64.b64decode(image, validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenTar(f"{pair.key}: its JSON says nothing readable of failed edits ({error!r}); {REMEDY}") from error
    if not failed:
        return None
    pictures = (*pair.images.values(), failed)
    return {
        "prompt": str(prompt),
        **{
            name: {"bytes": content, "path": f"{pair.key}.{name}.{pair.extension}"}
            for name, content in zip(PICTURES, pictures, strict=True)
        },
        "caption": pair.texts["caption0"],
        "negative_caption": pair.texts["caption1"],
        "reason": str(reason),
        **pair.json.terms.columns,
    }


EDIT_PREFERENCES_FORMAT = Format(PAIR, export_edits)
