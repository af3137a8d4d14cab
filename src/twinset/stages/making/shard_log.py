"""What became of the shards that a run made or tried to: a log record of each."""

import logging
import time
from collections.abc import Mapping
from typing import Any

#: Of each shard a record at level INFO, whose attribute ``shard`` holds `Shard.record`.
logger = logging.getLogger("twinset.shards")


class Shard:
    """A shard in the making.

    record: what the log says of it: its stage and number (``shard``), candidates ``kept`` and ``rejected``,
    ``seconds``, ``bytes`` of tar and rows, ``attempts``, and the ``error`` that it failed with.
    """

    def __init__(self, stage: str, number: int) -> None:
        self._began = time.monotonic()
        self.record: dict[str, Any] = {"stage": stage, "shard": number, "kept": 0, "rejected": 0, "seconds": 0.0}
        self.record |= {"bytes": 0, "attempts": 0, "error": None}

    def attempt(self) -> None:
        """It is tried."""
        self.record["attempts"] += 1

    def made(self, receipt: Mapping[str, Any]) -> None:
        """It has this receipt."""
        rejected = sum(receipt["rejected"].values())
        self._end(kept=receipt["kept"], rejected=rejected, bytes=receipt["tar_size"] + receipt["rows_size"])

    def failed(self, error: str) -> None:
        """It cannot be made."""
        self._end(error=error)

    def _end(self, **found: Any) -> None:
        record = self.record
        record |= {**found, "seconds": round(time.monotonic() - self._began, 3)}
        words = record["error"] or f"{record['kept']} kept, {record['rejected']} rejected in {record['seconds']} s"
        logger.info("%s shard %05d: %s", record["stage"], record["shard"], words, extra={"shard": record})
