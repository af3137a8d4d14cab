"""Free answers on disk, as SugarCrepe released those of GPT-4V: a table of choices, and figures of it.

    DIR/positive-first/SPLIT.json      the true caption was (1)
    DIR/negative-first/SPLIT.json      the true caption was (2)

A file is an object of ``{KEY: {"caption", "negative_caption", "filename", "answer": {"free_form_answer": …}}}``;
``answer`` may be the text itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import polars as pl
from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.evaluation.answers.parser import as_published, parse
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.metrics.figures import Figure, figures_json
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.row_values import ALL, refuse_all
from twinset.evaluation.score_files.opening import save_scores
from twinset.generators.annotation_files import read_json
from twinset.generators.record_fields import problems_of

ORDERS = ("positive-first", "negative-first")
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


_ANSWERS = TypeAdapter(Annotated[dict[str, _Answer], Field(min_length=1)])


def read_answers(folder: Path) -> pl.DataFrame:
    """All answers of a folder as a table of `COLUMNS`, by split, positive first.

    Raises:
        WrongUse: there are none, a file is not as described above, or two files do not belong together.
    """
    rows = [row for order in ORDERS for path in sorted((folder / order).glob("*.json")) for row in _rows(path, order)]
    if not rows:
        raise WrongUse(f"{folder}: no answers; write positive-first/SPLIT.json and negative-first/SPLIT.json into it")
    answers = pl.DataFrame(rows, COLUMNS, orient="row").sort("split", maintain_order=True)
    refuse_all({*answers["split"]}, f"{folder}: the name of a split")
    unlike = answers.unique([*EXAMPLE, *QUESTION], maintain_order=True).filter(pl.len().over(EXAMPLE) > 1)
    if len(unlike):
        file, key = unlike.select("file", "key").row(-1)
        what = "another image or other captions than in the other order"
        raise WrongUse(f"{folder / file}: {key}: {what}; take both files from one version of the split")
    return answers


def _rows(path: Path, order: str) -> Iterator[tuple[Any, ...]]:
    held = read_json(path)
    if isinstance(held, dict) and isinstance(held.get("accuracy"), int | float):
        del held["accuracy"]  # a file of SugarCrepe's has this number beside the answers
    try:
        answers = _ANSWERS.validate_python(held, strict=True)
    except ValidationError as error:
        raise WrongUse(f"{path}: {problems_of(error)}; write the object that docs/scores.md shows") from error
    true = 1 + ORDERS.index(order)
    for key, row in answers.items():
        captions = (row.caption, row.negative_caption)
        reading = parse(row.answer, captions if true == 1 else captions[::-1])
        choice, published = next(iter(reading.choices), None), as_published(row.answer)
        yield (
            *(f"{order}/{path.name}", path.stem, order, key, PurePosixPath(row.filename).stem, *captions, row.answer),
            *(choice, reading.reason, choice and choice == true, published and published == true),
        )


def measure_answers(answers: pl.DataFrame, seed: int = 0, resamples: int = 2000) -> Figures:
    """Figures of each split and of all, in percent, with intervals clustered by image.

    Of one order: right, wrong and unparsed of all answers; the expected value of ``right`` has a coin in place of an
    unparsed answer. first: of the answers with a choice, how many chose the caption that was shown first.

    Of examples that were asked in both orders: right or wrong where both answers are, inconsistent where the order
    decides, unparsed where an answer has no choice. average: of all answers, as SugarCrepe's table has it. first: as
    above; a model that reads the captions has 50 %.
    """
    right, rights, first = pl.col("right"), pl.col("rights"), pl.col("choice") == 1
    one_order = {"right": right.cast(pl.Float64).fill_null(0.5), "wrong": right.eq_missing(pl.lit(value=False))}
    one_order |= {"unparsed": right.is_null(), "first": first}
    # A row an answer: a share of examples is the same share of their answers, since each has two.
    both_orders = {name: rights.eq_missing(n) for name, n in (("right", 2), ("wrong", 0), ("inconsistent", 1))}
    both_orders |= {"unparsed": rights.is_null(), "average": right.eq_missing(pl.lit(value=True)), "first": first}
    parts = {split: answers.filter(split=split) for split in answers["split"].unique().sort()}
    measured = dict[str, dict[str, tuple[int, dict[str, Figure]]]]()
    for split, part in (parts if len(parts) == 1 else parts | {ALL: answers}).items():
        asked = {order: (part.filter(order=order), one_order) for order in ORDERS}
        asked["both_orders"] = _paired(part), both_orders
        measured[split] = {
            order: (rows.select(EXAMPLE).n_unique(), _measured(rows, figures, seed, resamples))
            for order, (rows, figures) in asked.items()
            if len(rows)
        }
    return measured


def document_of(answers: pl.DataFrame, measured: Figures) -> dict[str, Any]:
    """What ``twinset eval answers --json`` prints: ``{"splits": {SPLIT: {ORDER: {"n", FIGURE: …}}}}``, with
    ``all`` of several, answers without a choice, and those that the released rule (``as_published``) reads differently.
    """
    splits = {
        split: {order: {"n": n, **figures_json(figures)} for order, (n, figures) in orders.items()}
        for split, orders in measured.items()
    }
    for split, order, right in answers.group_by("split", "order").agg(pl.col("as_published").sum()).iter_rows():
        splits[split][order]["as_published"] = {"right": right}
    whole = {ALL: splits.pop(ALL)} if ALL in splits else {}
    listed = answers.select("file", "key", "text", "choice", "reason", "right", "as_published")
    unlike = listed.filter(pl.col("right").ne_missing(pl.col("as_published")))
    unparsed = listed.filter(pl.col("choice").is_null())
    return {**whole, "splits": splits, "unparsed": unparsed.to_dicts(), "differences": unlike.to_dicts()}


def _paired(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers to examples that were asked in both orders, with how many ``rights`` both have, null for one unparsed."""
    right = pl.col("right")
    rights = pl.when(right.is_not_null().all()).then(right.sum()).over(EXAMPLE)
    return answers.filter(pl.len().over(EXAMPLE) == len(ORDERS)).with_columns(rights=rights)


def _measured(rows: pl.DataFrame, figures: Mapping[str, pl.Expr], seed: int, resamples: int) -> dict[str, Figure]:
    """The mean of each column, nulls left out; a number of 0.5 is a coin."""
    measured = {}
    for name, values in figures.items():
        scores = rows.select(s00=values, group="image").drop_nulls()
        if len(scores):
            scored = scores.cast({"s00": pl.Float64}).with_columns(s01=1 - pl.col("s00"))
            figure = measure(scored.to_arrow(), (), seed, resamples).all.figures["accuracy"]
            chance = figure.expected if scores["s00"].dtype == pl.Float64 else None
            measured[name] = replace(figure, expected=chance)
    return measured


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
    save_scores(scored.to_arrow().cast(MATCHING_SCORES), {"model": model, "left_out": left_out}, path)
