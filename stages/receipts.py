"""Publishing a shard: its files, then the receipt that vouches for them, then a log that nothing depends on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from manifests.canonical import sha256_of_file
from manifests.receipt import Model, Receipt, parse_receipt
from shards.rows import KEPT, REJECTED, Row, write_rows
from shards.storage import layout
from shards.storage.store import Store


def publish_with_receipt(store: Store, files: Mapping[str, Path | None], place: str, receipt: Model) -> None:
    """Move finished files to their places and write the receipt last.

    files: the spooled file for each place, None where none belongs now. place: of the receipt.
    """
    store.remove(place)  # an old receipt must not vouch for new files, nor a new receipt for old ones
    for path, spooled in files.items():
        if spooled is None:
            store.remove(path)
        else:
            store.move_in(spooled, path)
    store.write(place, receipt.to_bytes())


def log_shard(store: Store, path: str, began: float) -> None:
    """Write who made a shard and how long it took. began: seconds since 1970."""
    log = {"host": socket.gethostname(), "pid": os.getpid(), "began": began, "seconds": time.time() - began}
    # The receipt is written and the shard done: a log that cannot be written must not say otherwise.
    with contextlib.suppress(OSError):
        store.write(path, json.dumps(log).encode())


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
    tar = spool / "tar" if receipt.tar_size else None
    files = {layout.tar(subset, receipt.split, receipt.shard): tar, layout.rows(subset, receipt.shard): spool / "rows"}
    publish_with_receipt(store, files, layout.receipt(subset, receipt.shard), receipt)
    return receipt
