"""Concreteness of words: ratings by people from 1 (abstract) to 5 (concrete), of a file in the form of Brysbaert et al.

GeneCIS (sections 5.2 and 6.2) keeps what its words score highly in. "Concreteness ratings for 40 thousand generally
known English word lemmas" (Brysbaert, Warriner and Kuperman, 2014) is a text file with a tab between its columns, of
which ``Word`` and ``Conc.M``, the mean rating, are read here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES

WORD, MEAN = "Word", "Conc.M"
CONCEPTS = VOCABULARIES / "triplets.yaml"
LOWEST, HIGHEST = 1.0, 5.0
LONGEST = 200  # characters of a word; inflect takes minutes for the plural of a million


def load_ratings(path: Path) -> dict[str, float]:
    """Mean ratings of lower-case words; raises `WrongUse` with file, line and remedy where it has another shape."""
    import polars as pl

    form = "the tab-separated file of Brysbaert et al. (2014), whose first line is 'Word<TAB>Bigram<TAB>Conc.M<TAB>…'"
    as_text: dict[str, Any] = {"separator": "\t", "quote_char": None, "infer_schema": False, "encoding": "utf8-lossy"}
    try:
        rows = pl.read_csv(path, columns=[WORD, MEAN], truncate_ragged_lines=True, **as_text)
    except (OSError, pl.exceptions.PolarsError) as error:
        problem = str(error).partition("\n")[0]
        raise WrongUse(f"{path}: has no columns {WORD!r} and {MEAN!r} ({problem}); name {form}") from error
    rows = rows.with_row_index("line", 2).filter(pl.any_horizontal(pl.col(WORD, MEAN).is_not_null()))
    rows = rows.with_columns(word=pl.col(WORD).str.strip_chars().str.to_lowercase())
    rows = rows.with_columns(mean=pl.col(MEAN).cast(pl.Float64, strict=False))
    fits = pl.col("word").str.len_chars().is_between(1, LONGEST) & ~pl.col("word").str.contains("\ufffd")
    fits &= pl.col("word").is_first_distinct() & pl.col("mean").is_between(LOWEST, HIGHEST)
    for line, word, mean in rows.filter(~fits.fill_null(False)).select("line", WORD, MEAN).iter_rows():
        raise WrongUse(
            f"{path}, line {line}: {(word or '')[:LONGEST]!r} rated {mean}; each word comes once, in UTF-8, with "
            f"a rating from {LOWEST:g} to {HIGHEST:g} as {MEAN}; correct the line, or name {form}"
        )
    if not rows.height:
        raise WrongUse(f"{path}: no word in it; name {form}")
    return dict(rows.select("word", "mean").iter_rows())


def with_plurals(rated: Mapping[str, float]) -> dict[str, float]:
    """Ratings as the released code of GeneCIS uses them: in the file's order each word's plural gets its rating.

    That overwrites rated words which are plurals too ("glasses" is then rated as "glass"), some before and some after
    their own plural has been given theirs. Takes some seconds.
    """
    import inflect

    engine, ratings = inflect.engine(), dict(rated)
    for word in rated:
        ratings[engine.plural(word)] = ratings[word]
    return ratings
