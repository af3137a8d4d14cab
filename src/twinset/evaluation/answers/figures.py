"""Free answers on disk, as SugarCrepe released those of GPT-4V: a table of choices, and figures of it.

    DIR/positive-first/SPLIT.json      the true caption was (1)
    DIR/negative-first/SPLIT.json      the true caption was (2)

A file is an object of ``{KEY: {"caption", "negative_caption", "filename", "answer": {"free_form_answer": …}}}``;
``answer`` may be the text itself. Files may be named ``MODEL-SPLIT.json``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import polars as pl
import pyarrow.parquet as pq
from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.evaluation.answers.parser import as_published, parse
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.metrics.figures import Figure, figures_json
from twinset.evaluation.metrics.measure import measure
from twinset.generators.annotation_files import read_json
from twinset.generators.record_fields import problems_of
from twinset.shards.storage.whole_file import whole_file

ORDERS = ("positive-first", "negative-first")
ALL = "all"  # splits together
EXAMPLE = ["split", "key"]  # columns that name an example, which is asked in two orders
QUESTION = ["image", "caption", "negative_caption"]
#: choice: number of the caption that is chosen, null for ``reason``. right: whether it is the true one. as_published:
#: the same by the released evaluation's rule.
COLUMNS = {
    **dict.fromkeys(("file", "split", "order", "key", *QUESTION, "text"), pl.String),
    **{"choice": pl.Int8, "reason": pl.String, "right": pl.Boolean, "as_published": pl.Boolean},
}
#: Figures with their number of examples, by split, or all, and by order, or both.
Figures = Mapping[str, Mapping[str, tuple[int, dict[str, Figure]]]]


class _Answer(BaseModel):
    filename: Annotated[str, Field(min_length=1)]
    caption: str
    negative_caption: str
    answer: str = Field(validation_alias=AliasChoices(AliasPath("answer", "free_form_answer"), "answer"))


_ANSWERS = TypeAdapter(dict[str, _Answer])


def read_answers(folder: Path) -> pl.DataFrame:
    """All answers of a folder as a table of `COLUMNS`, by split, positive first.

    Raises:
        WrongUse: there are none, a file is not as described above, or two files do not belong together.
    """
    rows, files = list[tuple[Any, ...]](), dict[tuple[str, str], Path]()
    for order in ORDERS:
        for path in sorted((folder / order).glob("*.json")):
            split = path.stem.rpartition("-")[2]
            if (first := files.setdefault((split, order), path)) != path:
                raise WrongUse(f"{path}: {first.name} is also of split {split}; keep answers of one model in a folder")
            rows += _rows(path, split, order)
    if not rows:
        raise WrongUse(f"{folder}: no answers; write positive-first/SPLIT.json and negative-first/SPLIT.json into it")
    answers = pl.DataFrame(rows, COLUMNS, orient="row").sort("split", maintain_order=True)
    unlike = answers.unique([*EXAMPLE, *QUESTION], maintain_order=True).filter(pl.len().over(EXAMPLE) > 1)
    if len(unlike):
        file, key = unlike.select("file", "key").row(-1)
        raise WrongUse(
            f"{folder / file}: {key}: another image or other captions than in the other order; the two orders are "
            "compared by key, so both files must be of one version of the split"
        )
    return answers


def _rows(path: Path, split: str, order: str) -> Iterator[tuple[Any, ...]]:
    held = read_json(path)
    if isinstance(held, dict) and isinstance(held.get("accuracy"), int | float):
        del held["accuracy"]  # a file of SugarCrepe's has this number beside the answers
    if not held:
        raise WrongUse(f"{path}: no answers; write an object of answers by key")
    try:
        answers = _ANSWERS.validate_python(held, strict=True)
    except ValidationError as error:
        raise WrongUse(f"{path}: {problems_of(error)}; write the object that docs/scores.md shows") from error
    true = 1 + ORDERS.index(order)
    for key, one in answers.items():
        captions = (one.caption, one.negative_caption)
        reading = parse(one.answer, captions if true == 1 else captions[::-1])
        choice, published = next(iter(reading.choices), None), as_published(one.answer)
        yield (
            *(f"{order}/{path.name}", split, order, key, PurePosixPath(one.filename).stem, *captions, one.answer),
            *(choice, reading.reason, choice and choice == true, published and published == true),
        )


def measure_answers(answers: pl.DataFrame, seed: int = 0, resamples: int = 2000) -> Figures:
    """Figures of each split and of all, in percent, with intervals clustered by image.

    Of one order: right, wrong and unparsed of all answers; the expected value of ``right`` has a coin in place of an
    unparsed answer. first: of the answers with a choice, how many chose the caption that was shown first.

    Of examples that were asked in both orders: right where both answers are, wrong where both are, inconsistent where
    the order decides, unparsed where an answer has no choice. average: right answers of one order and of the other,
    their mean, as SugarCrepe's table has it. first: as above; a model that reads the captions has 50 %.
    """
    right, rights, first = pl.col("right"), pl.col("rights"), pl.col("choice") == 1
    one_order = {"right": right.cast(pl.Float64).fill_null(0.5), "wrong": right.eq_missing(pl.lit(value=False))}
    one_order |= {"unparsed": right.is_null(), "first": first}
    # A row an answer: a share of examples is the same share of their answers, since each has two.
    both_orders = {name: rights.eq_missing(n) for name, n in (("right", 2), ("wrong", 0), ("inconsistent", 1))}
    both_orders |= {"unparsed": rights.is_null(), "average": right.eq_missing(pl.lit(value=True)), "first": first}
    parts = [(order, answers.filter(pl.col("order") == order), one_order) for order in ORDERS]
    parts += [("both_orders", _paired(answers), both_orders)]
    splits, found = [*answers["split"].unique().sort()], dict[str, dict[str, tuple[int, dict[str, Figure]]]]()
    for split in splits if len(splits) == 1 else [*splits, ALL]:
        for order, every, figures in parts:
            rows = every if split == ALL else every.filter(pl.col("split") == split)
            if len(rows):
                count = rows.select(pl.struct(EXAMPLE).n_unique()).item()
                found.setdefault(split, {})[order] = count, _measured(rows, figures, seed, resamples)
    return found


def document_of(answers: pl.DataFrame, measured: Figures) -> dict[str, Any]:
    """What ``twinset eval answers --json`` prints: ``{"splits": {SPLIT: {ORDER: {"n", "as_published", FIGURE: …}}}}``,
    with ``all`` of several splits, answers without a choice, and those that the released rule reads in another way.
    """
    found: dict[str, dict[str, Any]] = {}
    for split, orders in measured.items():
        for order, (n, figures) in orders.items():
            right = answers.filter(pl.col("order") == order, (pl.lit(split) == ALL) | (pl.col("split") == split))[
                "as_published"
            ]
            counts = {"right": right.sum(), "wrong": right.not_().sum(), "unparsed": right.null_count()}
            published = {"as_published": counts} if order in ORDERS else {}
            found.setdefault(split, {})[order] = {"n": n, **published, **figures_json(figures)}
    listed = answers.select("file", "key", "text", "choice", "reason", "right", "as_published")
    unlike = pl.col("right").ne_missing(pl.col("as_published"))
    lists = {"unparsed": listed.filter(pl.col("choice").is_null()), "differences": listed.filter(unlike)}
    whole = {ALL: found.pop(ALL)} if ALL in found else {}
    return {**whole, "splits": found, **{name: rows.to_dicts() for name, rows in lists.items()}}


def _paired(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers to examples that were asked in both orders, with how many ``rights`` both have, null for one unparsed."""
    right = pl.col("right")
    rights = pl.when(right.is_not_null().all()).then(right.sum()).over(EXAMPLE)
    return answers.filter(pl.len().over(EXAMPLE) == len(ORDERS)).with_columns(rights=rights)


def _measured(rows: pl.DataFrame, figures: Mapping[str, pl.Expr], seed: int, resamples: int) -> dict[str, Figure]:
    """The mean of each column, nulls left out; a number of 0.5 is a coin."""
    found = {}
    for name, values in figures.items():
        scores = rows.select(s00=values, group="image").drop_nulls()
        if len(scores):
            scored = scores.cast({"s00": pl.Float64}).with_columns(s01=1 - pl.col("s00"))
            figure = measure(scored.to_arrow(), (), seed, resamples).all.figures["accuracy"]
            chance = figure.expected if scores["s00"].dtype == pl.Float64 else None
            found[name] = replace(figure, expected=chance)
    return found


def scores(straight: int | None, swapped: int | None) -> tuple[float, float]:
    """Scores of two captions by the places that were chosen in both orders, as shown: 1 and 0 where both agree, else a
    tie.
    """
    if straight is None or swapped is None or straight != 1 - swapped:
        return 0.5, 0.5
    return (1.0, 0.0) if straight == 0 else (0.0, 1.0)


def write_choices(path: Path, answers: pl.DataFrame, model: str) -> None:
    """Write the choices of examples that were asked in both orders as `scores`; caption 0 is the true one.

    Keys are ``SPLIT/KEY`` and groups are images, as `evaluation.benchmarks` has them for SugarCrepe.
    """
    pairs = _paired(answers).filter(pl.col("order") == ORDERS[0])
    left_out = {"one order": alone} if (alone := len(answers) - len(ORDERS) * len(pairs)) else {}
    key, right = pl.concat_str(EXAMPLE, separator="/"), (pl.col("rights") / 2).fill_null(0.5)
    scored = pairs.select(key=key, subset="split", category="split", group="image", s00=right)
    scored = scored.with_columns(s01=1 - pl.col("s00"), s10=None, s11=None)
    about = json.dumps({"model": model, "left_out": left_out}, sort_keys=True)
    with whole_file(path) as beside:
        pq.write_table(scored.to_arrow().cast(MATCHING_SCORES.with_metadata({"twinset": about})), beside)
