"""One change of one file, drawn from a seeded generator: of its bytes, lines, values or place on the disk."""

from __future__ import annotations

import csv
import pickle
import shutil
import sqlite3
import struct
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import yaml

from tests.trials import changed_files as files
from tests.trials import changed_values as values
from tests.trials.changed_bytes import BYTES, LINES, Change

#: What readers and writers raise for a value that their form cannot hold, and for a damaged file.
UNWRITABLE = (
    *(ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError, NotImplementedError),
    *(pa.ArrowException, sqlite3.Error, yaml.YAMLError, csv.Error, struct.error, pickle.PicklingError),
    tarfile.TarError,
)
GROWTH = 4 << 20  # bytes: a larger valid file just takes longer

#: What is changed in files of a form, by suffix, besides bytes.
FORMS: dict[str, tuple[Change, ...]] = {
    ".json": (*4 * (values.json_value,), *LINES[:4]),
    ".jsonl": (*4 * (values.json_line,), *LINES[:4]),
    ".yaml": (*4 * (values.yaml_value,), *LINES[:4]),
    ".cfg": LINES,
    ".md": LINES,
    ".csv": (*4 * (values.csv_cell,), *LINES),
    ".tsv": (*4 * (values.csv_cell,), *LINES),
    ".txt": (values.csv_cell, *LINES),
    ".pkl": (*3 * (values.pickled_value,), values.deep_pickle),
    ".parquet": (files.parquet_table,),
    ".sqlite": (files.database,),
    ".tar": (files.tar_member,),
    ".safetensors": (values.tensors_header,),
    ".png": (files.png_chunk, files.other_picture),
    ".jpg": (files.other_picture,),
    ".webp": (files.other_picture,),
}


def mutate(folder: Path, paths: Sequence[Path], random: Random) -> str:
    """Change one of the files below a folder; returns what was done."""
    path = random.choice(paths)
    name = path.relative_to(folder)
    if random.random() < 0.1:
        return f"{name}: {_replaced(path, random)}"
    before, form = path.read_bytes(), FORMS.get(path.suffix.lower(), BYTES)
    change = random.choice(form if random.random() < 0.75 else BYTES)
    try:
        after = change(before, random)
        if len(after) > len(before) + GROWTH:
            raise ValueError("grew by more than is tried here")
    except UNWRITABLE:  # this value cannot be written in this form
        change = random.choice(BYTES)
        after = change(before, random)
    path.write_bytes(after)
    at = next((n for n, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before))
    return f"{name}: {change.__name__}, {len(before)} bytes are {len(after)}, from {at} on {after[at : at + 60]!r}"


def _replaced(path: Path, random: Random) -> str:
    """Another file, or none, in the place of a file."""
    what = random.choice(("nothing", "a folder", "a link", "another file", "compressed"))
    content = path.read_bytes()
    beside = sorted(file for file in path.parent.iterdir() if file.is_file() and file != path)
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what == "a link":
        path.symlink_to(random.choice((path.name, "gone", ".")))
    elif what == "another file":
        shutil.copy(random.choice(beside), path) if beside else path.write_bytes(b"PAR1" * 3)
    elif what == "compressed":
        path.write_bytes(zlib.compress(content))
    return f"{what} in its place"
