"""Which nouns the captions of each photo contain, wherever in a sentence and whatever a parser makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from generators.triplets.columns import Bools, Codes, distinct, found_in

BATCH = 1 << 16  # captions taken apart at once
APART = r"[^\p{L}\p{N}]+"  # what stands between words


class Spoken:
    """The nouns of every photo's captions.

    noun: of each of `generators.triplets.graphs.Relations.words`, its last word's number, equal for forms of one lemma.
    """

    def __init__(self, words: Sequence[str], forms: Iterable[tuple[str, str]]) -> None:
        """Number the nouns.

        words: of all relations. forms: of nouns among them, as written and as lemma; the last word of each counts.
        Regular plurals are forms too, also those that no relation has.
        """
        lemmas: dict[str, int] = {}
        self.noun = np.array([lemmas.setdefault(_last(word), len(lemmas)) for word in words], dtype=np.int32)
        self._of_token: dict[str, list[int]] = {}
        for written, lemma in forms:
            noun = _last(lemma)
            for token in (_last(written), noun, f"{noun}s", f"{noun}es", f"{noun.removesuffix('y')}ies"):
                numbers = self._of_token.setdefault(token, [])
                if lemmas[noun] not in numbers:
                    numbers.append(lemmas[noun])
        self._pairs: list[NDArray[np.int64]] = []

    def add(self, photos: Codes, captions: pa.Array) -> None:
        """Add captions, each of the photo with that number."""
        for start in range(0, len(captions), BATCH):
            lower = pc.utf8_lower(captions.slice(start, BATCH))
            tokens = pc.split_pattern_regex(lower, APART)
            photo = photos[start : start + BATCH][pc.list_parent_indices(tokens).to_numpy()].astype(np.int64)
            encoded = pc.list_flatten(tokens).dictionary_encode()
            nouns = [self._of_token.get(token, []) for token in encoded.dictionary.to_pylist()]
            token = encoded.indices.to_numpy()
            for nth in range(max(map(len, nouns), default=0)):  # a form of two lemmas ("glasses") counts as both
                number = np.array([one[nth] if nth < len(one) else -1 for one in nouns], dtype=np.int64)[token]
                there = number >= 0
                self._pairs.append(distinct(photo[there] << 32 | number[there]))

    def finish(self) -> None:
        """Sort what was added; `says` can be asked from now on."""
        self._sorted = distinct(np.concatenate([*self._pairs, np.array([-1])]))
        self._pairs.clear()

    def says(self, photos: Codes, words: Codes) -> Bools:
        """Whether some caption of each photo contains the noun of each word, in any form."""
        return found_in(self._sorted, photos.astype(np.int64) << 32 | self.noun[words])


def _last(words: str) -> str:
    """The last word of a compound, in lower case: what the compound is."""
    found = re.findall(r"[^\W_]+", words.lower())
    return found[-1] if found else words
