"""What became of the shards that a run made or tried to: a log record of each, and their sums as OpenMetrics text."""

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from twinset.shards.storage.store import Store

#: Of each shard a record at level INFO, whose attribute ``shard`` holds `Shard.record`.
logger = logging.getLogger("twinset.shards")

FOLDER = "_runs"  # below OUT
#: By name, the unit of OpenMetrics and what is counted.
COUNTERS = {
    "twinset_shards": ("", "Shards that the run ended, by what became of them"),
    "twinset_samples": ("", "Candidates of the shards that were made, by verdict"),
    "twinset_shard_seconds": ("seconds", "Time from the first attempt at a shard to its end, of all shards"),
    "twinset_retries": ("", "Attempts at shards beyond the first"),
    "twinset_written_bytes": ("bytes", "Tars and rows of the shards that were made"),
}


class ShardLog:
    """The shards of a run, of all stages."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in COUNTERS}
        self._lock = threading.Lock()

    def begin(self, stage: str, number: int) -> "Shard":
        """A shard is begun."""
        return Shard(self, stage, number)

    def add(self, shard: Mapping[str, Any]) -> None:
        """Count the record of a shard that ended."""
        stage, failed = shard["stage"], shard["error"] is not None
        counts = {
            ("twinset_shards", 'outcome="made"'): not failed,
            ("twinset_shards", 'outcome="failed"'): failed,
            ("twinset_samples", 'verdict="kept"'): shard["kept"],
            ("twinset_samples", 'verdict="rejected"'): shard["rejected"],
            ("twinset_shard_seconds", ""): shard["seconds"],
            ("twinset_retries", ""): shard["attempts"] - 1,
            ("twinset_written_bytes", ""): shard["bytes"],
        }
        with self._lock:
            for (name, label), count in counts.items():
                self._sums[name][stage, label] += count

    def text(self) -> str:
        """The sums as OpenMetrics text; empty where no shard ended."""
        lines = []
        with self._lock:
            for name, (unit, words) in COUNTERS.items():
                lines += [
                    f"# TYPE {name} counter",
                    *([f"# UNIT {name} {unit}"] if unit else []),
                    f"# HELP {name} {words}.",
                ]
                for (stage, label), count in self._sums[name].items():
                    labels = ",".join(filter(None, [f'stage="{stage}"', label]))
                    lines.append(f"{name}_total{{{labels}}} {round(count, 3)}")
            return "\n".join([*lines, "# EOF", ""]) if self._sums["twinset_shards"] else ""

    def write(self, store: Store) -> None:
        """Write the text below OUT, as a file of this run; nothing where there is none or it cannot be written."""
        name = f"{FOLDER}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(4).hex()}.prom"
        if text := self.text():
            with contextlib.suppress(OSError):  # as any log: nothing depends on it
                store.write(name, text.encode())


class Shard:
    """A shard in the making.

    record: what the log says of it: its stage and number (``shard``), candidates ``kept`` and ``rejected``,
    ``seconds``, ``bytes`` of tar and rows, ``attempts``, and the ``error`` that it failed with.
    """

    def __init__(self, log: ShardLog, stage: str, number: int) -> None:
        self._log, self._began = log, time.monotonic()
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
        self._log.add(record)
        words = record["error"] or f"{record['kept']} kept, {record['rejected']} rejected in {record['seconds']} s"
        logger.info("%s shard %05d: %s", record["stage"], record["shard"], words, extra={"shard": record})
