"""Changes of the values within JSON, YAML, pickles, CSV and headers of tensors: types, numbers, names and depth."""

from __future__ import annotations

import csv
import io
import json
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.trials.changed_bytes import ODD

RAW = "\ue000raw"  # marks text that stands in JSON or YAML as it is, which no value of Python gives
DEEP, DIGITS = 20_000, 5_000
RAW_JSON = (
    *("1" * DIGITS, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP),
    *('"\\ud800"', "1e999", "NaN", "tru"),
)
RAW_YAML = (
    *(
        "1" * DIGITS,
        "[" * 2000 + "]" * 2000,
        "!!python/object/apply:os.getcwd []",
        "&a [*a]",
        "*none",
        "0o17",
        "1:30:30",
    ),
    *(".inf", "2020-01-01", "!!binary aGk=", "!!set {a, b}", "{? [a, b] : c}", "{<<: {kind: x}}", "{a: 1, a: 2}"),
    *("!x y", "'"),
)
NAMES = ("extra", "", "kind", "__class__", "id")
PICKLED: tuple[Any, ...] = (Path("x"), {1, 2}, print, frozenset(), 1j, bytearray(3), range(9), ..., Random)


def change_value(value: Any, random: Random, raw: Sequence[str] = ()) -> Any:
    """A value with one node changed. raw: texts that may stand in its place."""
    if isinstance(value, dict | list) and value and random.random() < 0.85:
        changed: Any = value.copy()
        key = random.choice([*value]) if isinstance(value, dict) else random.randrange(len(value))
        if random.random() < 0.1:
            del changed[key]
        else:
            changed[key] = change_value(value[key], random, raw)
        return changed
    what = random.choice(("odd", "odd", "odd", "raw", "wrapped", "changed"))
    if what == "raw" and raw:
        return RAW + random.choice(raw)
    if what == "wrapped":
        text = json.dumps(value, default=str)
        return random.choice(([value], {"x": value}, str(value), [value, value], [[value]], text))
    return _like(value, random) if what == "changed" else random.choice(ODD)


def _like(node: Any, random: Random) -> Any:
    """Something near: other members, another number, a shorter text."""
    if isinstance(node, dict) and node and random.random() < 0.7:
        key = random.choice([*node])
        name = random.choice((f"{key}x", "", str(key).upper(), "\ud800", 3, None))
        return {name if field == key else field: inner for field, inner in node.items()}
    if isinstance(node, dict):
        return {**node, random.choice(NAMES): random.choice(ODD)}
    if isinstance(node, list):
        longer = [*node, random.choice(ODD)]
        return random.choice((node[1:], node[::-1], node * 2, node * 300, longer, dict(enumerate(node))))
    if isinstance(node, bool):
        return not node
    if isinstance(node, int | float):
        return random.choice((-node, node + 1, node * 1000, node / 3, float(node), str(node), node - 1e9, [node]))
    if isinstance(node, str):
        ends = (f" {node} ", f"{node}\n", f"{node}/..", f"{node}\0")
        return random.choice((node[:-1], node * 50, node.upper(), node[::-1], *ends))
    return random.choice(ODD)


def as_json(value: Any) -> bytes:
    """JSON, and YAML, with marked texts replaced by what they mark."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    while (start := text.find(f'"{RAW}')) >= 0:
        marked, end = json.JSONDecoder().raw_decode(text, start)
        text = text[:start] + marked[len(RAW) :] + text[end:]
    return text.encode("utf-8", "surrogatepass")


def json_value(data: bytes, random: Random) -> bytes:
    return as_json(change_value(json.loads(data), random, RAW_JSON))


def json_line(data: bytes, random: Random) -> bytes:
    lines = data.splitlines()
    at = random.randrange(len(lines))
    lines[at] = json_value(lines[at], random)
    return b"\n".join([*lines, b""])


def yaml_value(data: bytes, random: Random) -> bytes:
    return as_json(change_value(yaml.safe_load(data), random, RAW_YAML))


def pickled_value(data: bytes, random: Random) -> bytes:
    value = change_value(pickle.loads(data), random)
    if random.random() < 0.1:
        value = random.choice((*PICKLED, [value] * 3))
    return pickle.dumps(value, random.randrange(6))


def deep_pickle(_: bytes, random: Random) -> bytes:
    depth = random.choice((500, DEEP))
    return random.choice((b"]" * depth + b"a" * (depth - 1) + b".", b"(" * depth + b"t" * depth + b"."))


def csv_cell(data: bytes, random: Random) -> bytes:
    """A cell is odd, renamed, removed or doubled, in its row or in all."""
    text = data.decode()
    tab = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=tab))
    row = random.choice(rows)
    column = random.randrange(len(row))
    what = random.choice(("odd", "odd", "odd", "removed", "more", "renamed"))
    if what == "odd":
        row[column] = str(random.choice(ODD))
    elif what == "renamed":
        rows[0][column] = random.choice(("", "x", rows[0][0], rows[0][column].upper(), f" {rows[0][column]}"))
    else:
        for changed in rows if random.random() < 0.6 else [row]:
            changed[column : column + 1] = [] if what == "removed" else ["x", *changed[column : column + 1]]
    out = io.StringIO()
    csv.writer(out, delimiter=tab, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def tensors_header(data: bytes, random: Random) -> bytes:
    """The header of a file of safetensors."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json_value(data[8 : 8 + size], random)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]
