"""Gold tasks: those whose right answer is known, to see how careful annotators are."""

from __future__ import annotations

import csv
from pathlib import Path

from manifests.errors import WrongUse


def read_gold(path: Path) -> dict[str, str]:
    """Right answers by key of the task, of a CSV file with columns ``key`` and ``answer``.

    Raises:
        WrongUse: it cannot be read, or lacks a column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return {row["key"]: row["answer"] for row in csv.DictReader(stream)}
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise WrongUse(f"{path}: not a CSV file with columns key and answer ({error}); correct it") from error
