"""What the captions of each photo name, wherever in a sentence and whatever a parser makes of it, and leave out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.triplets.draws import Bools, Codes, Floats, Growing, distinct, found_in

FILE = VOCABULARIES / "triplets.yaml"


@dataclass(frozen=True, slots=True)
class Concept:
    """What one or more nouns name. names: these nouns and their other names; implied_by: words that imply it."""

    names: frozenset[str]
    implied_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Concepts:
    """The lists. by_noun: the concept of each noun that they have. digest: sha256 of the file, in hexadecimal."""

    by_noun: Mapping[str, Concept]
    digest: str

    def of_noun(self, noun: str) -> Concept:
        """The concept of any noun; one that no list has is its own only name."""
        return self.by_noun.get(noun) or Concept(frozenset((noun,)), frozenset())


def forms_of(nouns: frozenset[str]) -> frozenset[str]:
    """Nouns and their regular plurals."""
    return frozenset(form for noun in nouns for form in (noun, f"{noun}s", f"{noun}es", f"{noun.removesuffix('y')}ies"))


@cache
def concepts() -> Concepts:
    """The lists, read once. A noun of several lines has the names of all of them, and what implies any of them."""
    by_noun: dict[str, Concept] = {}
    for line in load_yaml(FILE.read_text("utf-8"))["concepts"]:
        names, implied_by = (frozenset(part.split()) for part in line.split(":"))
        for name in names:
            before = by_noun.get(name) or Concept(frozenset(), frozenset())
            by_noun[name] = Concept(before.names | names, before.implied_by | implied_by)
    return Concepts(by_noun, sha256_of_file(FILE)[0])


SEVERAL = 3  # captions of a photo, from which on it is counted
PHOTOS = 1000  # that many of which it takes to estimate anything
RELIABLE = 0.7  # odds up to which an object may be a target's: three of five photos that show it say so
PRIOR = 2.0  # added to the photos with one caption that names a noun, so that rare nouns are not taken for reliable


@dataclass(frozen=True, slots=True)
class Mentions:
    """How often photos show a thing that none of their captions names, from photos of `SEVERAL` captions or more.

    What captions leave out cannot be read in them, but it can be estimated from how unevenly they name it. Of 117
    photos a caption of which has the word "frisbee", one of five has it in 17, two in 11, three or more in 89: few can
    be left that show one and have it in none. Of 1,147 with the word "jacket" one has it in 782, two in 244: as many
    again show one unsaid. Ecology counts unseen species so; the estimate is Chao's (1987, Biometrics 43, 783-791), f1^2
    / (2 f2), of photos with one and with two captions that name the thing.

    odds: of each noun, the estimated number of photos that show it unsaid for each that says it. photos: that name
    each noun, one after the other; start: where those of each noun begin, and the end. highest: number of a photo.
    """

    odds: Floats
    photos: Codes
    start: NDArray[np.int64]
    highest: int

    def unsaid(self, subject: Codes, object_: Codes) -> Floats:
        """Of photos that name a subject, but not an object, the estimated share that show the object (0 to 1).

        Of the photos that say both nouns, odds times as many more show the object unsaid.
        """
        both = np.zeros(len(subject))
        says = np.zeros(self.highest + 1, dtype=np.bool_)
        for noun in np.unique(subject).tolist():
            own = self._of(noun)
            says[own] = True
            for at in np.flatnonzero(subject == noun).tolist():
                both[at] = says[self._of(int(object_[at]))].sum()
            says[own] = False
        silent = np.diff(self.start)[subject] - both
        return np.minimum(both * self.odds[object_] / np.maximum(silent, 1), 1.0)

    def _of(self, noun: int) -> Codes:
        return self.photos[self.start[noun] : self.start[noun + 1]]


def mentions_of(named: NDArray[np.int64], captions: NDArray[np.int64], nouns: int) -> Mentions | None:
    """The mentions of nouns; None where fewer than `PHOTOS` photos have `SEVERAL` captions.

    Args:
        named: photo << 32 | noun, once for each caption that names it, sorted; -1 is skipped.
        captions: of each photo, how many.
        nouns: how many there are.
    """
    several = captions >= SEVERAL
    if several.sum() < PHOTOS:
        return None
    named = named[named >= 0]
    named = named[several[named >> 32]]
    once = distinct(named)
    times = np.diff(np.append(np.searchsorted(named, once), len(named)))
    noun = once & 0xFFFFFFFF
    photos = np.bincount(noun, minlength=nouns)
    one, two = (np.bincount(noun[times == number], minlength=nouns) for number in (1, 2))
    # Chao's f1^2 / (2 f2) with the prior; 1 is added to f2, as in his bias-corrected form, because f2 can be 0.
    odds = (one + PRIOR) ** 2 / (2 * (two + 1)) / np.maximum(photos, 1)
    order = np.argsort(noun, kind="stable")
    start = np.concatenate([[0], np.cumsum(photos)])
    return Mentions(odds, (once >> 32)[order].astype(np.int32), start, int(once[-1] >> 32))


BATCH = 1 << 16  # captions taken apart at once
APART = r"[^\p{L}\p{N}]+"  # what stands between words
BITS = 64

Numbers = NDArray[np.int64]


class Spoken:
    """The nouns of every photo's captions.

    noun: of each of `generators.triplets.graphs.Relations.words`, the number of what its last word names, equal for
    forms of one lemma and for names of one concept (`generators.triplets.captions`).
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
        ordered = {token: sorted(found) for token, found in said.items()}
        implied: dict[str, set[int]] = {}
        for concept, number in numbers.items():
            for token in forms_of(concept.implied_by):
                implied.setdefault(token, set()).add(number)
        # A bit for each concept that other words imply. The lists bound their number, so that a photo has few bytes.
        self._bit = np.full(len(numbers), -1, dtype=np.int64)
        bits = sorted(set[int]().union(*implied.values()))
        self._bit[bits] = np.arange(len(bits))
        self._implied = np.zeros((len(bits) // BITS + 1, int(photos.max(initial=-1)) + 1), dtype=np.uint64)
        pairs = Growing(np.int64)
        pairs.add(np.array([-1]))
        new = not_repeated(photos, captions)
        for start in range(0, len(captions), BATCH):
            here = new[start : start + BATCH]
            photo = photos[start : start + BATCH][here].astype(np.int64)
            texts = captions.slice(start, BATCH).combine_chunks().filter(pa.array(here))
            tokens = pc.split_pattern_regex(pc.utf8_lower(texts), APART)
            caption = pc.list_parent_indices(tokens).to_numpy().astype(np.int64)
            encoded = pc.list_flatten(tokens).dictionary_encode()
            token, dictionary = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
            pairs.add(_named(photo, caption, token, [ordered.get(word, ()) for word in dictionary]))
            implying = [
                (at, self._bit[[*implied[word]]].tolist()) for at, word in enumerate(dictionary) if word in implied
            ]
            for plane, masks in enumerate(self._implied):
                set_by = np.zeros(len(dictionary), dtype=np.uint64)
                set_by[[at for at, _ in implying]] = [_mask(bits, plane) for _, bits in implying]
                mask = set_by[token]
                some = np.flatnonzero(mask)
                np.bitwise_or.at(masks, photo[caption[some]], mask[some])
        pa.default_memory_pool().release_unused()  # of the words of all batches
        named = pairs.whole()
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
        of_token = np.full(len(nouns), -1, dtype=np.int64)
        some = [at for at, one in enumerate(nouns) if nth < len(one)]
        of_token[some] = [nouns[at][nth] for at in some]
        number = of_token[token]
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
