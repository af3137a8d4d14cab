"""One change of one file, drawn from a seeded generator: of its bytes, lines, values or place on the disk."""

from __future__ import annotations

import csv
import pickle
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import yaml

from tests.trials.changed_bytes import BYTES, LINES, WHOLE, Change, clear
from tests.trials.changed_files import database, other_picture, parquet_table, png_chunk, tar_member
from tests.trials.changed_values import (
    csv_cell,
    deep_pickle,
    json_line,
    json_value,
    pickled_value,
    tensors_header,
    yaml_value,
)

#: What writers raise for a value that their form cannot hold.
UNWRITABLE = (
    *(ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError, NotImplementedError),
    *(pa.ArrowException, sqlite3.Error, yaml.YAMLError, csv.Error, struct.error, pickle.PicklingError),
)
GROWTH = 4 << 20  # bytes: a larger valid file just takes longer

#: What is changed in files of a form, by suffix, besides bytes.
FORMS: dict[str, tuple[Change, ...]] = {
    ".json": (json_value, json_value, json_value, json_value, *LINES[:4]),
    ".jsonl": (json_line, json_line, json_line, json_line, *LINES[:4]),
    ".yaml": (yaml_value, yaml_value, yaml_value, yaml_value, *LINES[:4]),
    ".cfg": LINES,
    ".md": LINES,
    ".csv": (csv_cell, csv_cell, csv_cell, csv_cell, *LINES),
    ".tsv": (csv_cell, csv_cell, csv_cell, csv_cell, *LINES),
    ".txt": (csv_cell, *LINES),
    ".pkl": (pickled_value, pickled_value, pickled_value, deep_pickle),
    ".parquet": (parquet_table,),
    ".sqlite": (database,),
    ".tar": (tar_member,),
    ".safetensors": (tensors_header,),
    ".png": (png_chunk, other_picture),
    ".jpg": (other_picture,),
    ".webp": (other_picture,),
}


def mutate(folder: Path, files: Sequence[Path], random: Random) -> str:
    """Change one of the files; returns what was done. files: below the folder."""
    path = random.choice(files)
    form = FORMS.get(path.suffix.lower(), ())
    changes: list[Change] = [*WHOLE] if random.random() < 0.1 else [*BYTES]
    if form and random.random() < 0.75:
        changes = [*form]
    change = random.choice(changes)
    before = path.read_bytes()
    try:
        said = change(path, random)
        if path.is_file() and path.stat().st_size > len(before) + GROWTH:
            raise ValueError("grew by more than is tried here")
    except UNWRITABLE as error:
        # This value cannot be written in this form, so its bytes are changed instead.
        clear(path)
        path.write_bytes(before)
        said = f"({type(error).__name__}) {random.choice(BYTES)(path, random)}"
    return f"{path.relative_to(folder)}: {said}"
