"""Rows that are right together: What'sUp's pairs of opposite prepositions and sets of all four, of the same objects."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.evaluation.metrics.questions import SETS
from twinset.shards.storage.whole_file import whole_file

OPPOSITES = ({"left", "right"}, {"on", "under"}, {"front", "behind"})
SUBSETS = ("a", "b")  # where four images show the same two objects
_KEY = b"twinset"
Row = Mapping[str, Any]


def add_sets(path: Path) -> None:
    """Write a table of ranks again with the columns `SETS`: null of rows whose pair or set is not whole."""
    table = pq.read_table(path)
    found = columns_of(table.select(["subset", "group", "category", "higher", "tied"]).to_pylist())
    for name in SETS:
        table = table.append_column(name, pa.array([one.get(name) for one in found], pa.float32()))
    about = json.loads(table.schema.metadata[_KEY])
    with whole_file(path) as temporary:
        writer = pq.ParquetWriter(temporary, table.schema.remove_metadata(), store_schema=False)
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True)})
        writer.close()


def columns_of(rows: Sequence[Row]) -> list[dict[str, float]]:
    """Of each row `SETS`, as far as its pair and its set are whole."""
    members: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(rows):
        if row["subset"] in SUBSETS:
            members[row["subset"], row["group"]][row["category"]] = place
    found: list[dict[str, float]] = [{} for _ in rows]
    for one in members.values():
        pairs = [[one[name] for name in names] for names in OPPOSITES if names <= one.keys()]
        sets = [[place for pair in pairs for place in pair]] if len(pairs) == 2 else []
        for what, some in (("pair", pairs), ("set", sets)):
            for places in some:
                right, chance = 1.0, 1.0
                for place in places:
                    higher, tied = rows[place]["higher"], rows[place]["tied"]
                    right *= higher + tied == 0
                    chance *= (higher == 0) / (tied + 1)  # the one right caption among equal ones
                for place in places:
                    found[place] |= {f"{what}_right": right, f"{what}_chance": chance}
    return found
