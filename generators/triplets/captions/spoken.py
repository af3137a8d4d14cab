"""Which nouns the captions of each photo contain, wherever in a sentence and whatever a parser makes of it."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.generators.triplets.captions.concepts import Concept, concepts, forms_of
from twinset.generators.triplets.captions.mentions import SEVERAL, mentions_of
from twinset.generators.triplets.columns import Bools, Codes, distinct, found_in

BATCH = 1 << 16  # captions taken apart at once
APART = r"[^\p{L}\p{N}]+"  # what stands between words
BITS = 64

Numbers = NDArray[np.int64]


class Spoken:
    """The nouns of every photo's captions.

    noun: of each of `generators.triplets.graphs.Relations.words`, the number of what its last word names, equal for
    forms of one lemma and for names of one concept (`generators.triplets.captions.concepts`).
    mentions: how reliably captions name each of these; None where too few photos have captions enough.
    """

    def __init__(
        self, words: Sequence[str], forms: Iterable[tuple[str, str]], photos: Codes, captions: pa.ChunkedArray
    ) -> None:
        """Number the nouns and find them in captions.

        Args:
            words: of all relations.
            forms: of nouns among them, as written and as lemma; the last word of each counts. Regular plurals are forms
                too, also those that no relation has.
            photos: of each caption, the number of its photo.
            captions: texts; what one photo has twice counts once.
        """
        lists, numbers = concepts(), dict[Concept, int]()
        self.noun = np.array(
            [numbers.setdefault(lists.of_noun(_last(word)), len(numbers)) for word in words], dtype=np.int32
        )
        said: dict[str, set[int]] = {}
        for written, lemma in forms:
            concept = lists.of_noun(_last(lemma))
            for token in forms_of(concept.names) | {_last(written)}:
                said.setdefault(token, set()).add(numbers[concept])
        implied: dict[str, set[int]] = {}
        for concept, number in numbers.items():
            for token in forms_of(concept.implied_by):
                implied.setdefault(token, set()).add(number)
        # A bit for each concept that other words imply. The lists bound their number, so that a photo has few bytes.
        self._bit = np.full(len(numbers), -1, dtype=np.int64)
        bits = sorted(set[int]().union(*implied.values()))
        self._bit[bits] = np.arange(len(bits))
        self._implied = np.zeros((len(bits) // BITS + 1, int(photos.max(initial=-1)) + 1), dtype=np.uint64)
        pairs = [np.array([-1], dtype=np.int64)]
        new = not_repeated(photos, captions)
        for start in range(0, len(captions), BATCH):
            here = new[start : start + BATCH]
            photo = photos[start : start + BATCH][here].astype(np.int64)
            texts = captions.slice(start, BATCH).combine_chunks().filter(pa.array(here))
            tokens = pc.split_pattern_regex(pc.utf8_lower(texts), APART)
            caption = pc.list_parent_indices(tokens).to_numpy().astype(np.int64)
            encoded = pc.list_flatten(tokens).dictionary_encode()
            token, dictionary = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
            pairs.append(_named(photo, caption, token, [sorted(said.get(word, ())) for word in dictionary]))
            for plane, masks in enumerate(self._implied):
                set_by = [_mask(self._bit[[*implied.get(word, ())]].tolist(), plane) for word in dictionary]
                mask = np.array(set_by, dtype=np.uint64)[token]
                some = np.flatnonzero(mask)
                np.bitwise_or.at(masks, photo[caption[some]], mask[some])
        named = np.concatenate(pairs)
        pairs.clear()
        named.sort()
        repeats = np.concatenate([[False], named[1:] == named[:-1]])
        self._named, self._again = named[~repeats], np.concatenate([[-1], distinct(named[repeats])])
        captions_of = np.bincount(photos[new])
        self._several = captions_of >= SEVERAL
        self.mentions = mentions_of(named, captions_of, len(numbers))

    def says(self, photos: Codes, words: Codes) -> Bools:
        """Whether some caption of each photo contains the noun of each word, in any form or under any name, or a word
        that implies it."""
        number = self.noun[words]
        bit = self._bit[number]
        plane, shift = np.divmod(np.maximum(bit, 0), BITS)
        implied = self._implied[plane, photos] >> shift.astype(np.uint64) & np.uint64(1) == 1
        return np.asarray(found_in(self._named, photos.astype(np.int64) << 32 | number) | implied & (bit >= 0))

    def confirms(self, photos: Codes, words: Codes) -> Bools:
        """Whether two captions of each photo name the noun of each word, or the photo has fewer than `SEVERAL`."""
        twice = found_in(self._again, photos.astype(np.int64) << 32 | self.noun[words])
        return np.asarray(twice | ~self._several[photos])


def _named(photo: Numbers, caption: Numbers, token: Codes, nouns: Sequence[Sequence[int]]) -> Numbers:
    """photo << 32 | noun, once for each caption that names the noun.

    photo: of each caption. caption, token: of each word, its caption and what it is. nouns: that each token names.
    """
    found = [np.array([], dtype=np.int64)]
    for nth in range(max(map(len, nouns), default=0)):  # a token of two nouns ("glasses") counts as both
        number = np.array([one[nth] if nth < len(one) else -1 for one in nouns], dtype=np.int64)[token]
        there = number >= 0
        found.append(caption[there] << 32 | number[there])
    once = distinct(np.concatenate(found))
    return np.asarray(photo[once >> 32] << 32 | once & 0xFFFFFFFF)


def _mask(bits: Iterable[int], plane: int) -> int:
    """A number with those bits set that are among the 64 of a plane."""
    return sum(1 << bit % BITS for bit in bits if bit // BITS == plane)


def _last(words: str) -> str:
    """The last word of a compound, in lower case: what the compound is."""
    found = re.findall(r"[^\W_]+", words.lower())
    return found[-1] if found else words


def not_repeated(photos: Codes, captions: pa.ChunkedArray) -> Bools:
    """Whether each caption is the first of its words among those of its photo: two data sets may have the same ones."""
    several = np.flatnonzero(np.bincount(photos)[photos] > 1)
    texts = captions.take(pa.array(several)).combine_chunks()
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(texts), APART, " "))
    code = plain.dictionary_encode().indices.to_numpy().astype(np.int64)
    _, first = np.unique(photos[several].astype(np.int64) << 32 | code, return_index=True)
    new = np.ones(len(photos), dtype=np.bool_)
    new[several] = False
    new[several[first]] = True
    return new
