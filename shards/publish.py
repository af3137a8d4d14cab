"""Publishing a shard: tar, then rows, then the receipt that vouches for both."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from manifests.canonical import sha256_of_file
from manifests.receipt import Receipt, parse_receipt
from shards import layout
from shards.rows import KEPT, REJECTED, Row, write_rows
from shards.store import Store


def publish_shard(store: Store, subset: str, draft: Receipt, rows: Sequence[Row], spool: Path) -> Receipt:
    """Write the rows, then move ``spool/tar`` and ``spool/rows`` to their places and write the receipt last.

    draft: a receipt whose tar is described; counts and rows are filled in here. A shard that keeps nothing has no tar.
    """
    write_rows(rows, spool / "rows")
    rows_sha256, rows_size = sha256_of_file(spool / "rows")
    receipt = draft.model_copy(
        update={
            "kept": sum(row.verdict == KEPT for row in rows),
            "rejected": dict(sorted(Counter(row.reason for row in rows if row.verdict == REJECTED).items())),
            "rows_sha256": rows_sha256,
            "rows_size": rows_size,
        }
    )
    # When the recipe names another split now, only the old receipt still knows where the old tar lies.
    with contextlib.suppress(FileNotFoundError):
        before = parse_receipt(store.read(layout.receipt(subset, receipt.shard)))
        if before is not None and before.split != receipt.split:
            store.remove(layout.tar(subset, before.split, receipt.shard))
    # An old receipt must not vouch for the new tar, nor a new receipt for an old one.
    store.remove(layout.receipt(subset, receipt.shard))
    tar = layout.tar(subset, receipt.split, receipt.shard)
    if receipt.tar_size:
        store.publish(spool / "tar", tar)
    else:
        store.remove(tar)
    store.publish(spool / "rows", layout.rows(subset, receipt.shard))
    store.write(layout.receipt(subset, receipt.shard), receipt.to_bytes())
    return receipt
