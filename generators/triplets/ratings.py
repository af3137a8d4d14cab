"""Concreteness of words: ratings by people from 1 (abstract) to 5 (concrete), of a file in the form of Brysbaert et al.

GeneCIS (sections 5.2 and 6.2) keeps what its words score highly in. "Concreteness ratings for 40 thousand generally
known English word lemmas" (Brysbaert, Warriner and Kuperman, 2014) is a text file with a tab between its columns, of
which ``Word`` and ``Conc.M``, the mean rating, are read here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import BYTE_ORDER_MARK, read_bytes

Rules = Literal["strict", "published"]
Balance = Literal["images", "subjects"]

WORD, MEAN = "Word", "Conc.M"
LOWEST, HIGHEST = 1.0, 5.0
LONGEST_WORD = 200  # characters; inflect takes minutes for the plural of a million
UNKNOWN = -1.0  # what the published rules count for a word that nobody rated


@dataclass(frozen=True, slots=True)
class Ratings:
    """Mean ratings of lower-case words: as in the file, and with the plurals of the published rules.

    published is None unless the ratings were loaded for the published rules.
    """

    rated: Mapping[str, float]
    published: Mapping[str, float] | None

    def strict_of(self, words: Sequence[str], lemmas: Sequence[str]) -> NDArray[np.float64]:
        """A rating a word, NaN where there is none: a rated word has its own, any other that of its lemma."""
        nothing = float("nan")
        return np.array(
            [
                self.rated.get(word.lower(), self.rated.get(lemma.lower(), nothing))
                for word, lemma in zip(words, lemmas, strict=True)
            ]
        )

    def published_of(self, words: Sequence[str]) -> NDArray[np.float64]:
        """A rating a word, of the word as it is written; `UNKNOWN` where there is none."""
        if self.published is None:
            raise ValueError("these ratings were loaded for the strict rules")
        return np.array([self.published.get(word, UNKNOWN) for word in words])


def load_ratings(path: Path, rules: Rules) -> Ratings:
    """The ratings of a file; raises `WrongUse` with file, line and remedy when it has another shape.

    ``published`` needs the package inflect and some seconds, for the plurals of all words.
    """
    rated = _read(path)
    return Ratings(rated, with_plurals(rated) if rules == "published" else None)


def with_plurals(rated: Mapping[str, float]) -> dict[str, float]:
    """Ratings as the released code of GeneCIS uses them: in the file's order each word's plural gets its rating.

    That overwrites rated words which are plurals too ("glasses" is then rated as "glass"), some before and some after
    their own plural has been given theirs.
    """
    try:
        import inflect
    except ModuleNotFoundError as error:
        raise WrongUse(
            "inflect is not installed; plurals of the published rules are made with it: pip install 'twinset[text]'"
        ) from error
    engine = inflect.engine()
    published = dict(rated)
    for word in rated:
        published[engine.plural(word)] = published[word]
    return published


def _read(path: Path) -> dict[str, float]:
    remedy = (
        "name the tab-separated file of Brysbaert et al. (2014), whose first line is 'Word<TAB>Bigram<TAB>Conc.M<TAB>…'"
    )
    lines = read_bytes(path).removeprefix(BYTE_ORDER_MARK).split(b"\n")
    header = [name.strip() for name in lines[0].split(b"\t")]
    if WORD.encode() not in header or MEAN.encode() not in header:
        raise WrongUse(f"{path}, line 1: no columns {WORD!r} and {MEAN!r} with tabs between; {remedy}")
    word_at, mean_at = header.index(WORD.encode()), header.index(MEAN.encode())
    rated: dict[str, float] = {}
    met: dict[str, int] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        here, fields = f"{path}, line {number}", line.rstrip(b"\r").split(b"\t")
        if len(fields) != len(header):
            raise WrongUse(f"{here}: {len(fields)} columns where the first line has {len(header)}; {remedy}")
        try:
            word, mean = fields[word_at].decode("utf-8").strip().lower(), float(fields[mean_at])
        except UnicodeDecodeError as error:
            raise WrongUse(f"{here}: not UTF-8; save the file as UTF-8") from error
        except ValueError as error:
            raise WrongUse(f"{here}: {MEAN} is {fields[mean_at].decode('utf-8', 'replace')!r}, no number") from error
        if not word or len(word) > LONGEST_WORD or not LOWEST <= mean <= HIGHEST:  # NaN too
            raise WrongUse(
                f"{here}: {word[:LONGEST_WORD]!r} rated {mean:g}; ratings are of words and go from {LOWEST:g} to "
                f"{HIGHEST:g}; {remedy}"
            )
        if word in met:
            raise WrongUse(f"{here}: {word!r} is rated in line {met[word]} already; remove one of the lines")
        rated[word], met[word] = mean, number
    if not rated:
        raise WrongUse(f"{path}: no word in it; {remedy}")
    return rated
