"""Kinds of what evaluation reads: releases of benchmarks, files of scores, answers of language models."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import polars as pl

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.trials.mutated_data import Act, Kind, command


def benchmark(name: str, folder: Path) -> None:
    LAYOUTS[name](folder / "data")


def read_benchmark(name: str, folder: Path) -> None:
    """Read all of a benchmark, with its pictures, as `evaluation.features` does."""
    from twinset.contracts.errors import WrongUse
    from twinset.evaluation.benchmarks import open_benchmark
    from twinset.evaluation.examples import LeftOut, Picture, Query
    from twinset.evaluation.features.pictures import Unusable, decode
    from twinset.evaluation.features.similarities import own_pictures

    opened = open_benchmark(name, folder / "data")
    opened.digest()
    for item in opened.examples():
        pictures = () if isinstance(item, LeftOut) else own_pictures(item)
        for picture in (*pictures, *(item.gallery if isinstance(item, Query) else ())):
            with suppress(OSError, WrongUse, Unusable):  # left out, as there
                if isinstance(picture, Picture):
                    decode(picture.where, picture.read())


def scores(folder: Path) -> None:
    rows = [
        {
            "key": f"k{n}", "caption": f"a cup {n}", "type": ("add", "swap")[n % 2], "group": f"g{n // 2}",
            "s00": 0.5 + n / 10, "s01": 0.3, "s10": 0.1 * n, "s11": 0.7,
        }
        for n in range(6)
    ]  # fmt: skip
    table = pl.DataFrame(rows)
    about = json.dumps({"benchmark": "b", "model": "m", "threshold": 0.4})
    table.write_parquet("a.parquet", metadata={"twinset": about})
    table.write_parquet("other.parquet")
    for name, separator in (("a.csv", ","), ("other.csv", ","), ("a.tsv", "\t")):
        table.write_csv(name, separator=separator)


MEASURED = ("--by", "type", "--resamples", "20")
SCORES: dict[str, Act] = {
    **{
        f"eval scores {name}": command("eval", "scores", name, "--group", "group", *MEASURED)
        for name in ("a.parquet", "a.csv", "a.tsv")
    },
    **{
        f"eval compare {form}": command("eval", "compare", f"a.{form}", f"other.{form}", "--key", "key", *MEASURED)
        for form in ("parquet", "csv")
    },
}


def answers(folder: Path) -> None:
    """What a language model answered to two splits, in both orders."""
    texts = ("1", "the first", "**2**", "Neither.", "I cannot say", "Caption 1: a red cup")
    captions = {"caption": "a red cup", "negative_caption": "a blue cup"}
    records = {str(n): {"answer": text, **captions, "filename": f"{n}.jpg"} for n, text in enumerate(texts)}
    for order in ("positive-first", "negative-first"):
        Path(order).mkdir()
        for split in ("swap_obj", "add_att"):
            Path(order, f"{split}.json").write_text(json.dumps(records))


ANSWERED = command("eval", "answers", ".", "--resamples", "20", "--out", "choices.parquet")
KINDS = (
    *(
        Kind(f"benchmark {name}", partial(benchmark, name), {"read": partial(read_benchmark, name)}, ["data/**/*"], 1)
        for name in LAYOUTS
    ),
    Kind("scores", scores, SCORES, ["*.parquet", "*.csv", "*.tsv"], 4),
    Kind("answers", answers, {"eval answers": ANSWERED}, ["*/*.json"]),
)
