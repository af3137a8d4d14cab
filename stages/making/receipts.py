"""Finishing a shard: its files, then the receipt that vouches for them, then a log that nothing depends on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from manifests.canonical import sha256_of_file
from manifests.receipt import Receipt, parse_receipt
from shards.rows import KEPT, REJECTED
from shards.storage import layout
from shards.storage.store import Store


def log_shard(store: Store, path: str, began: float) -> None:
    """Write who made a shard and how long it took. began: seconds since 1970."""
    log = {"host": socket.gethostname(), "pid": os.getpid(), "began": began, "seconds": time.time() - began}
    # The receipt is written and the shard done: a log that cannot be written must not say otherwise.
    with contextlib.suppress(OSError):
        store.write(path, json.dumps(log).encode())


def finish_shard(
    store: Store, home: str, draft: Receipt, verdicts: Mapping[str, tuple[str, str]], spool: Path
) -> Receipt:
    """Move ``spool/tar`` and ``spool/rows`` to their places and write the receipt last.

    Args:
        draft: a receipt whose tar is described; counts and rows are filled in here. A shard without samples has no tar.
        verdicts: of each candidate by key: verdict and reason.
    """
    rows_sha256, rows_size = sha256_of_file(spool / "rows")
    rejected = Counter(reason for verdict, reason in verdicts.values() if verdict == REJECTED)
    receipt = draft.model_copy(
        update={
            "kept": sum(verdict == KEPT for verdict, _ in verdicts.values()),
            "rejected": dict(sorted(rejected.items())),
            "rows_sha256": rows_sha256,
            "rows_size": rows_size,
        }
    )
    place = layout.receipt(home, receipt.shard)
    # When the recipe names another split now, only the old receipt still knows where the old tar lies.
    with contextlib.suppress(FileNotFoundError):
        before = parse_receipt(store.read(place))
        if before is not None and before.split != receipt.split:
            store.remove(layout.tar(home, before.split, receipt.shard))
        store.remove(place)  # an old receipt must not vouch for new files, nor a new receipt for old ones
    tar = layout.tar(home, receipt.split, receipt.shard)
    if receipt.tar_size:
        store.move_in(spool / "tar", tar)
    else:
        store.remove(tar)
    store.move_in(spool / "rows", layout.rows(home, receipt.shard))
    store.write(place, receipt.to_bytes())
    return receipt
