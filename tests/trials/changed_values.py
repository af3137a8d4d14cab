"""Changes of the values within JSON, YAML, pickles, CSV and headers of tensors: types, numbers, names and depth."""

from __future__ import annotations

import csv
import io
import json
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.trials.changed_bytes import ODD

RAW = "\ue000raw"  # marks text that stands in JSON or YAML as it is, which no value of Python gives
DEEP, DIGITS = 20_000, 5_000

RAW_JSON = (
    "1" * DIGITS,
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    '"\\ud800"',
    "1e999",
    "NaN",
    "tru",
)
RAW_YAML = (
    *RAW_JSON[:1],
    *("[" * 2000 + "]" * 2000, "!!python/object/apply:os.getcwd []", "&a [*a]", "*none", "0o17", "1:30:30", ".inf"),
    *("2020-01-01", "!!binary aGk=", "!!set {a, b}", "{? [a, b] : c}", "{<<: {kind: x}}", "{a: 1, a: 2}", "!x y", "'"),
)


# Values, of JSON, YAML, pickles and headers.

Step = Any


def _nodes(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    yield path
    if len(path) < 12:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in list(items)[:300]:
            yield from _nodes(inner, (*path, key))


def _at(value: Any, path: Sequence[Step]) -> Any:
    for step in path:
        value = value[step]
    return value


def change_value(value: Any, random: Random, raw: Sequence[str] = ()) -> tuple[Any, str]:
    """A value with one node changed, and what was done."""
    by_depth: dict[int, list[tuple[Step, ...]]] = {}
    for found in _nodes(value):
        by_depth.setdefault(len(found), []).append(found)
    path = random.choice(by_depth[random.choice([*by_depth])])  # else most nodes are leaves
    node = _at(value, path)
    what = random.choice(("odd", "odd", "odd", "raw", "wrapped", "changed"))
    new: Any = random.choice(ODD)
    if what == "raw" and raw:
        new = RAW + random.choice(raw)
    elif what == "wrapped":
        new = random.choice(([node], {"x": node}, str(node), [node, node], [[node]], json.dumps(node, default=str)))
    elif what == "changed":
        new = _like(node, random)
    said = f"{'.'.join(map(str, path))[:80] or 'all'} is {str(new)[:60]!r} ({type(new).__name__})"
    if not path:
        return new, said
    inside, last = _at(value, path[:-1]), path[-1]
    if random.random() < 0.15:
        del inside[last]
        return value, f"{'.'.join(map(str, path))[:80]} removed"
    inside[last] = new
    return value, said


def _like(node: Any, random: Random) -> Any:
    """Something near: other members, another number, a shorter text."""
    if isinstance(node, dict):
        keys = [*node]
        if not keys or random.random() < 0.3:
            return {**node, random.choice(("extra", "", "kind", "__class__", "id")): random.choice(ODD)}
        key = random.choice(keys)
        if random.random() < 0.5:
            new = random.choice((f"{key}x", "", str(key).upper(), "\ud800", 3, None))
            return {new if one == key else one: inner for one, inner in node.items()}
        return {one: inner for one, inner in node.items() if one != key}
    if isinstance(node, list):
        return random.choice(
            (
                node[1:],
                node[::-1],
                node * 2,
                node * 300,
                [*node, random.choice(ODD)],
                {str(n): v for n, v in enumerate(node)},
            )
        )
    if isinstance(node, bool):
        return not node
    if isinstance(node, int | float):
        return random.choice((-node, node + 1, node * 1000, node / 3, float(node), str(node), node - 1e9, [node]))
    if isinstance(node, str):
        return random.choice(
            (node[:-1], node * 50, node.upper(), f" {node} ", f"{node}\n", node[::-1], f"{node}/..", f"{node}\0")
        )
    return random.choice(ODD)


def _put_raw(text: str, quote: Callable[[str], str]) -> str:
    """Replace marked texts by what they mark."""
    while (start := text.find(f'"{RAW}')) >= 0 or (start := text.find(f'"{quote(RAW)}')) >= 0:
        value, end = json.JSONDecoder().raw_decode(text, start)
        text = text[:start] + value[len(RAW) :] + text[end:]
    return text


def as_json(value: Any) -> str:
    return _put_raw(json.dumps(value, ensure_ascii=False, default=str), lambda raw: raw)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def json_value(path: Path, random: Random) -> str:
    value, said = change_value(json.loads(path.read_bytes()), random, RAW_JSON)
    _write(path, as_json(value))
    return said


def json_line(path: Path, random: Random) -> str:
    lines = path.read_text("utf-8").splitlines()
    at = random.randrange(len(lines))
    value, said = change_value(json.loads(lines[at]), random, RAW_JSON)
    lines[at] = as_json(value)
    _write(path, "\n".join(lines) + "\n")
    return f"line {at + 1}: {said}"


def yaml_value(path: Path, random: Random) -> str:
    value, said = change_value(yaml.safe_load(path.read_bytes()), random, RAW_YAML)
    _write(path, _put_raw(json.dumps(value, ensure_ascii=False, default=str), lambda raw: raw))  # JSON is YAML
    return said


def pickled_value(path: Path, random: Random) -> str:
    value, said = change_value(pickle.loads(path.read_bytes()), random)
    if random.random() < 0.1:
        value = random.choice(
            (Path("x"), {1, 2}, print, frozenset(), 1j, bytearray(3), range(9), ..., Random, [value] * 3)
        )
        said = f"a pickle of {type(value).__name__}"
    protocol = random.randrange(6)
    path.write_bytes(pickle.dumps(value, protocol))
    return f"{said}, protocol {protocol}"


def deep_pickle(path: Path, random: Random) -> str:
    depth = random.choice((500, DEEP))
    path.write_bytes(random.choice((b"]" * depth + b"a" * (depth - 1) + b".", b"(" * depth + b"t" * depth + b".")))
    return f"a pickle {depth} deep"


def csv_cell(path: Path, random: Random) -> str:
    text = path.read_text("utf-8")
    tab = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=tab)]
    at = random.randrange(len(rows))
    row = rows[at]
    column = random.randrange(len(row))
    what = random.choice(("odd", "odd", "odd", "removed", "more", "renamed"))
    if what == "removed":
        for one in rows if random.random() < 0.7 else [row]:
            del one[column : column + 1]
    elif what == "more":
        for one in rows if random.random() < 0.5 else [row]:
            one.insert(column, "x")
    elif what == "renamed":
        rows[0][column] = random.choice(("", "x", rows[0][0], rows[0][column].upper(), f" {rows[0][column]}"))
    else:
        row[column] = str(random.choice(ODD))
    out = io.StringIO()
    csv.writer(out, delimiter=tab, lineterminator="\n").writerows(rows)
    _write(path, out.getvalue())
    return f"cell {column} of row {at}: {what} {row[column : column + 1]!r:.60}"


def tensors_header(path: Path, random: Random) -> str:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, said = change_value(json.loads(data[8 : 8 + size]), random, RAW_JSON)
    text = as_json(header).encode("utf-8", "surrogatepass")
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    return f"header: {said}"
