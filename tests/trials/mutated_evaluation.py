"""Kinds of what evaluation reads: releases of benchmarks, files of scores, answers of language models."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.trials.mutated_data import Act, command


def benchmark(name: str, folder: Path) -> None:
    """A released benchmark, small."""
    LAYOUTS[name](folder / "data")


def read_benchmark(name: str, folder: Path) -> None:
    """Read all of a benchmark, with its pictures, as `evaluation.features` does."""
    from twinset.contracts.errors import WrongUse
    from twinset.evaluation.benchmarks import open_benchmark
    from twinset.evaluation.examples import Grounding, Matching, Query
    from twinset.evaluation.features.pictures import Unusable, decode

    opened = open_benchmark(name, folder / "data")
    opened.digest()
    for item in opened.examples():
        if isinstance(item, Matching):
            pictures = [*item.images]
        elif isinstance(item, Query):
            pictures = [one for one in (item.image, *item.gallery) if one is not None and not isinstance(one, str)]
        else:
            pictures = [*item.frames] if isinstance(item, Grounding) else []
        for picture in pictures:
            with suppress(OSError, WrongUse, Unusable):  # left out, as there
                decode(picture.where, picture.read())


ROWS = [
    {
        "key": f"k{n}", "caption": f"a cup {n}", "type": ("add", "swap")[n % 2], "group": f"g{n // 2}",
        "s00": 0.5 + n / 10, "s01": 0.3, "s10": 0.1 * n, "s11": 0.7,
    }
    for n in range(6)
]  # fmt: skip


def scores(folder: Path) -> None:
    """Scores of two models, in three forms."""
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(
        table.replace_schema_metadata({"twinset": json.dumps({"benchmark": "b", "model": "m", "threshold": 0.4})}),
        "a.parquet",
    )
    pq.write_table(table, "other.parquet")
    for name, tab in (("a.csv", ","), ("other.csv", ","), ("a.tsv", "\t")):
        with open(name, "w", newline="") as stream:
            writer = csv.DictWriter(stream, ROWS[0].keys(), delimiter=tab)
            writer.writeheader()
            writer.writerows(ROWS)


def score_acts() -> dict[str, Act]:
    """Measure each form, and compare two of one."""
    found = {
        f"eval scores {name}": command("eval", "scores", name, "--by", "type", "--group", "group", "--resamples", "20")
        for name in ("a.parquet", "a.csv", "a.tsv")
    }
    for form in ("parquet", "csv"):
        found[f"eval compare {form}"] = command(
            "eval", "compare", f"a.{form}", f"other.{form}", "--key", "key", "--by", "type", "--resamples", "20"
        )
    return found


def answers(folder: Path) -> None:
    """What a language model answered to two splits, in both orders."""
    said = ("1", "the first", "**2**", "Neither.", "I cannot say", "Caption 1: a red cup")
    for order in ("positive-first", "negative-first"):
        for split in ("swap_obj", "add_att"):
            held = {
                str(n): {
                    "answer": text,
                    "caption": "a red cup",
                    "negative_caption": "a blue cup",
                    "filename": f"{n}.jpg",
                }
                for n, text in enumerate(said)
            }
            Path(order).mkdir(exist_ok=True)
            Path(order, f"{split}.json").write_text(json.dumps(held))


KINDS: tuple[tuple[Any, ...], ...] = (
    *(
        (f"benchmark {name}", partial(benchmark, name), {"read": partial(read_benchmark, name)}, ["data/**/*"], 1)
        for name in LAYOUTS
    ),
    ("scores", scores, score_acts(), ["*.parquet", "*.csv", "*.tsv"], 4),
    (
        "answers",
        answers,
        {"eval answers": command("eval", "answers", ".", "--resamples", "20", "--out", "choices.parquet")},
        ["*/*.json"],
        2,
    ),
)
