"""Concreteness of words: ratings by people from 1 (abstract) to 5 (concrete), of a file in the form of Brysbaert et al.

GeneCIS (sections 5.2 and 6.2) keeps what its words score highly in. "Concreteness ratings for 40 thousand generally
known English word lemmas" (Brysbaert, Warriner and Kuperman, 2014) is a text file with a tab between its columns, of
which ``Word`` and ``Conc.M``, the mean rating, are read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import BYTE_ORDER_MARK, read_bytes

WORD, MEAN = "Word", "Conc.M"
LOWEST, HIGHEST = 1.0, 5.0
LONGEST_WORD = 200  # characters; inflect takes minutes for the plural of a million
UNKNOWN = -1.0  # what the published rules count for a word that nobody rated


@dataclass(frozen=True)
class Ratings:
    """Mean ratings of lower-case words, as in the file."""

    rated: Mapping[str, float]

    @cached_property
    def published(self) -> Mapping[str, float]:
        """Ratings as the released code of GeneCIS uses them: in the file's order each word's plural gets its rating.

        That overwrites rated words which are plurals too ("glasses" is then rated as "glass"), some before and some
        after their own plural has been given theirs. Takes some seconds.
        """
        try:
            import inflect
        except ModuleNotFoundError as error:
            raise WrongUse(
                "inflect is not installed; plurals of the published rules are made with it: pip install 'twinset[text]'"
            ) from error
        engine, published = inflect.engine(), dict(self.rated)
        for word in self.rated:
            published[engine.plural(word)] = published[word]
        return published


def load_ratings(path: Path) -> Ratings:
    """The ratings of a file; raises `WrongUse` with file, line and remedy when it has another shape."""
    form = "the tab-separated file of Brysbaert et al. (2014), whose first line is 'Word<TAB>Bigram<TAB>Conc.M<TAB>…'"
    lines = read_bytes(path).removeprefix(BYTE_ORDER_MARK).split(b"\n")
    header = [name.strip() for name in lines[0].split(b"\t")]
    if WORD.encode() not in header or MEAN.encode() not in header:
        raise WrongUse(f"{path}, line 1: no columns {WORD!r} and {MEAN!r} with tabs between; name {form}")
    rated: dict[str, float] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        here, row = f"{path}, line {number}", dict(zip(header, line.rstrip(b"\r").split(b"\t"), strict=False))
        try:
            word, mean = row[WORD.encode()].decode("utf-8").strip().lower(), float(row[MEAN.encode()])
        except (KeyError, ValueError) as error:  # UnicodeDecodeError is one
            raise WrongUse(f"{here}: has no word in UTF-8 with a number {MEAN}; name {form}") from error
        if not word or len(word) > LONGEST_WORD or not LOWEST <= mean <= HIGHEST:  # NaN too
            raise WrongUse(
                f"{here}: {word[:LONGEST_WORD]!r} rated {mean:g}; ratings are of words and go from {LOWEST:g} to "
                f"{HIGHEST:g}; name {form}"
            )
        if word in rated:
            raise WrongUse(f"{here}: {word!r} is rated in a line before; remove one of the lines")
        rated[word] = mean
    if not rated:
        raise WrongUse(f"{path}: no word in it; name {form}")
    return Ratings(rated)
