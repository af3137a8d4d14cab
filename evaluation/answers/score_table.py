"""Choices as a table of scores, so that answers of a language model are measured and compared as any model's scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.evaluation.answers.both_orders import scores
from twinset.evaluation.answers.report import Read, paired
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.shards.storage.whole_file import whole_file


def write_scores(path: Path, answers: Sequence[Read], facts: dict[str, str]) -> int:
    """Write the scores of examples that were asked in both orders; returns how many.

    Keys are ``SPLIT/KEY`` and groups are images, as `evaluation.benchmarks` has them for SugarCrepe. Caption 0 is the
    true one.

    Args:
        facts: of the file's metadata.
    """
    pairs = paired(answers)
    alone = len(answers) - 2 * len(pairs)
    rows = []
    for first, second in pairs:
        one = first.answered
        s00, s01 = scores(_place(first), _place(second))
        identity = {"key": f"{first.split}/{one.key}", "subset": first.split, "category": first.split}
        rows.append(
            {**identity, "group": PurePosixPath(one.image).stem, "s00": s00, "s01": s01, "s10": None, "s11": None}
        )
    told = {**facts, "left_out": {"one order": alone} if alone else {}}
    schema = MATCHING_SCORES.with_metadata({"twinset": json.dumps(told, sort_keys=True)})
    with whole_file(path) as beside:
        pq.write_table(pa.Table.from_pylist(rows, schema), beside)
    return len(rows)


def _place(one: Read) -> int | None:
    """Of the caption that was chosen, as shown."""
    return None if one.reading.choice is None else one.reading.choice - 1
