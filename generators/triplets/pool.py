"""What triplets are drawn from: relations grouped by subject and object, and which subjects may be drawn."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.generators.triplets.captions import forms_of
from twinset.generators.triplets.draws import Bools, Codes, Floats, distinct, first_of_each, numbered
from twinset.generators.triplets.graphs import CLASSES, PHRASES, Facts, Relations
from twinset.generators.triplets.ratings import LOWEST, Balance, Ratings, Rules

VISIBLE = 3.0  # rating of a verb from which on a photo shows the deed: 2.0 negotiate, 3.7 hold


def strict_steps(relations: Relations, facts: Facts, rated: Bools) -> Iterator[tuple[str, Bools]]:
    """What is asked of every relation, as the funnel says after "relations", and which of all relations meet it.

    These say what a photo shows, and were not misread. Words are judged by closed classes alone: measures, parts of
    space, words for pictures, and prepositions.
    """
    yield "with both words rated", rated
    yield "of captions that neither comment nor tell of what is drawn", _says_what_a_photo_shows(relations)
    yield "that are of two nouns", facts.nouns
    yield "whose caption begins with the subject", facts.begins
    yield "that no word denies", ~facts.negated
    nouns = _among(relations.words, _names_no_thing)
    named = nouns[relations.subject_lemma] | nouns[relations.object_lemma]
    yield "without measures, parts of space, times, regions and words for pictures", ~named
    roles = _among(relations.words, lambda word: word.lower().rpartition(" ")[2] in CLASSES["roles"])
    named = roles[relations.subject_lemma] | roles[relations.object_lemma]
    yield "of no word that stands for a name, and no kin", ~(facts.stand_in | named)
    parts = _among(relations.words, lambda word: word.lower() in CLASSES["parts"] | CLASSES["clothes"])
    yield (
        "of two things that are no part of a body and no ordinary clothes",
        ~(parts[relations.subject_lemma] | parts[relations.object_lemma]),
    )
    said = relations.predicate_lemma
    states = _among(relations.words, lambda word: word.lower().partition(" ")[0] in CLASSES["states"])
    yield (
        "of two things, which are not said to be one",
        ~states[said] & (relations.subject_lemma != relations.object_lemma),
    )
    nowhere, directions = (
        _among(relations.words, _is_one_of(which)) for which in (CLASSES["nowhere"], CLASSES["directions"])
    )
    yield (
        "whose predicate says where or what without a verb left out",
        ~(nowhere[said] | nowhere[relations.predicate] | (directions[said] & facts.verb)),
    )
    unseen = _among(relations.words, _is_one_of(CLASSES["unseen"]))
    having = _among(relations.words, lambda word: word.lower() == "having")
    yield "of deeds that a photo shows", ~(unseen[said] | having[relations.predicate] | _is_past(relations))
    objectless = _among(relations.words, lambda word: word.lower() in CLASSES["objectless"])
    broken = _among(relations.words, _is_unknown_phrase)
    yield (
        "whose predicate has its preposition, and its verb where it needs one",
        ~(objectless[said] | broken[relations.predicate] | facts.unplaced),
    )
    owns, grounds = (_among(relations.words, _is_one_of(which)) for which in (CLASSES["owning"], CLASSES["grounds"]))
    matter = _among(relations.words, lambda word: word.lower() in CLASSES["matter"])[relations.subject_lemma]
    behind = facts.backdrop | owns[said] & grounds[relations.object_lemma]
    yield "of two things that are not the background, nor cover or fill a place", ~(behind | matter)
    yield "whose words cannot belong to another noun", ~facts.contested
    if facts.confirmed is not None:
        yield "that the second parser finds too, or that a sentence begins with", facts.confirmed | facts.plain


def supported(one: Codes, other: Codes, photo: Codes, min_support: int) -> Bools:
    """Whether the two words of each relation are those of relations of as many photos."""
    pair = numbered(one.astype(np.int64) << 32 | other)
    seen = distinct(pair.astype(np.int64) << 32 | photo) >> 32
    return np.asarray((np.bincount(seen) >= min_support)[pair])


#: Marks of quotations, exclamations, questions, headings and pauses.
_MARKS = r"[\"“”«»`?!#@:;…]|''|\.\.\."


def _says_what_a_photo_shows(relations: Relations) -> Bools:
    """Of each relation, whether its caption has no mark or word of those that comment, or tell of what is drawn."""
    words = sorted({*CLASSES["remarks"], *forms_of(CLASSES["drawings"])})
    pattern = rf"{_MARKS}|(?:^|[^\p{{L}}\p{{N}}])(?:{'|'.join(words)})(?:[^\p{{L}}\p{{N}}]|$)"
    found = pc.match_substring_regex(relations.texts["caption"], pattern, ignore_case=True)
    return np.asarray(~found.to_numpy()[relations.caption])


def _is_past(relations: Relations) -> Bools:
    """Whether each predicate is a verb in the past: of a story, or a participle that was misread ("reduced salt")."""
    said, lemma = relations.predicate, relations.predicate_lemma
    past = _among(relations.words, lambda word: " " not in word and not word.lower().endswith(("ing", "s")))
    return np.asarray(past[said] & (said != lemma))


def _among(words: Sequence[str], test: Callable[[str], bool]) -> Bools:
    return np.fromiter(map(test, words), dtype=np.bool_, count=len(words))


def _is_one_of(which: Collection[str]) -> Callable[[str], bool]:
    return lambda word: word.lower().partition(" ")[0] in which


def _is_unknown_phrase(predicate: str) -> bool:
    """Whether a predicate of several words is none of a verb and a preposition, nor one of `PHRASES`."""
    lower = predicate.lower()
    return " " in lower and lower.partition(" ")[0] in CLASSES["unverbs"] and lower not in PHRASES


_NO_THINGS = CLASSES["pictures"] | CLASSES["times"] | CLASSES["regions"]


def _names_no_thing(noun: str) -> bool:
    """Whether a noun measures, or names a part of space, a time, a region or the picture; a compound of the first two
    names a thing ("fishing line", "street corner")."""
    lower = noun.lower()
    return lower in CLASSES["measures"] | CLASSES["places"] or lower.rpartition(" ")[2] in _NO_THINGS


@dataclass(frozen=True, slots=True)
class Rated:
    """What one set of rules makes of every relation: equal numbers for words that count as the same, and ratings."""

    subject: Codes
    object: Codes
    subject_rating: Floats
    object_rating: Floats


class Pool:
    """Relations sorted by subject, then object; a "pair" is a subject with one of its objects.

    Of each relation: row, its place in ``relations``; image; subject_rating, object_rating; pair.
    Of each pair: start and count, its relations; subject, object. Of each subject: pairs_start and pairs_count;
    relations_count; images, how many different ones it is in, or 1 where subjects are drawn evenly; eligible, whether
    it has as many images and objects as are asked for: strict, images of all its relations with two rated words. Of
    each object: object_start and object_count, its relations in ``by_object``, which sorts relations by object, then
    subject.
    """

    def __init__(
        self,
        relations: Relations,
        ratings: Ratings,
        rules: Rules,
        min_images: int,
        min_support: int = 1,
        balance: Balance = "images",
    ) -> None:
        """Rate and group the relations, under the strict rules those alone that `strict_steps` lets pass.

        Order within a pair is that of the files, so that the same relations give the same pool.

        Args:
            relations, ratings, rules: to mine by.
            min_images: how many images a subject needs; it needs two objects besides (GeneCIS, as released: 5 images).
            min_support, balance: strict: as `generators.triplets.source.Triplets`.

        Raises:
            ValueError: the strict rules are asked for, and the relations come without facts.
        """
        self.relations, self.rules = relations, rules
        rated = rate(relations, ratings, rules)
        self.steps: dict[str, int] = {}
        image, facts = relations.image, relations.facts
        good = np.isfinite(rated.subject_rating) & np.isfinite(rated.object_rating)
        if rules == "strict":
            if facts is None:
                raise ValueError("the strict rules need the facts of relations")
            image, both = facts.photo, good
            every = _images_of_each(rated.subject[both], image[both])
            good = self._strict(facts, rated, both, min_support, ratings)
        kept = np.flatnonzero(good).astype(np.int32)
        both_words = rated.subject[kept].astype(np.int64) << 32 | rated.object[kept]
        order = np.argsort(both_words, kind="stable")
        # One after the other, and each let go: of millions of captions these are gigabytes.
        self.row, both_words = kept[order], both_words[order]
        del kept, order, good
        self.start, self.pair, self.count = _groups(both_words)
        of_pair = both_words[self.start]
        del both_words
        self.subject_rating = rated.subject_rating[self.row]
        self.object_rating = rated.object_rating[self.row]
        del rated
        self.image = image[self.row]
        self.pairs_start, self.subject, self.pairs_count = _groups(of_pair >> 32)
        self.object = np.unique(of_pair & 0xFFFFFFFF, return_inverse=True)[1].astype(np.int32)
        subject = self.subject[self.pair]  # of each relation
        self.relations_count = np.bincount(subject).astype(np.int32)
        self.images = _images_of_each(subject, self.image)
        seen = self.images
        if rules == "strict":
            seen = every[of_pair[self.pairs_start] >> 32]
            if balance == "subjects":
                self.images = np.ones_like(self.images)
        self.eligible = (seen >= min_images) & (self.pairs_count >= 2)
        self.by_object = np.argsort(self.object[self.pair], kind="stable").astype(np.int32)
        self.object_start, _, self.object_count = _groups(self.object[self.pair][self.by_object])

    def __len__(self) -> int:
        return len(self.row)

    def _strict(self, facts: Facts, rated: Rated, both: Bools, min_support: int, ratings: Ratings) -> Bools:
        """Which relations the strict rules mine; both: which have two rated words. Counts are in ``steps``."""
        good = np.ones(len(both), dtype=np.bool_)
        for step, meets in strict_steps(self.relations, facts, both):
            good &= meets
            self.steps[f"relations {step}"] = int(good.sum())
        words, photo = self.relations.words, facts.photo
        good &= facts.plain | supported(rated.subject, rated.object, photo, min_support)
        step = f"relations of pairs of words that {min_support} photos or more have, or that a sentence begins with"
        self.steps[step] = int(good.sum())
        said = self.relations.predicate_lemma
        place = _among(words, _is_one_of(CLASSES["prepositions"] | CLASSES["unverbs"] | CLASSES["owning"]))[said]
        verbs = [word.lower().partition(" ")[0] for word in words]
        verb = np.unique(verbs, return_inverse=True)[1].astype(np.int32)
        seen = np.array([ratings.rated.get(word, LOWEST) >= VISIBLE for word in verbs])
        ground = _among(words, lambda word: word.lower().rpartition(" ")[2] in CLASSES["grounds"])
        bare = _among(words, lambda word: " " not in word)  # "carrying pond", not "running on beach"
        common = supported(verb[said], np.zeros_like(said), photo, min_support)
        deed = ~place & seen[said] & common & ~(bare[said] & ground[self.relations.object_lemma])
        good &= deed | supported(said, rated.object, photo, min_support)
        step = (
            f"relations whose verb is in the captions of {min_support} photos or more and rated {VISIBLE:g} or more "
            f"for concreteness, or whose verb and object are together in those of {min_support} photos or more"
        )
        self.steps[step] = int(good.sum())
        return good


def rate(relations: Relations, ratings: Ratings, rules: Rules) -> Rated:
    """Rate every relation. NaN is the rating of an unrated word under the strict rules, -1 under the published ones.

    published: words are the same when they are written the same. strict: when their lemmas are, in any case.
    """
    if rules == "published":
        of_word = ratings.published_of(relations.words)
        subject, object_ = relations.subject, relations.object
        return Rated(subject, object_, of_word[subject], of_word[object_])
    # Not an array of texts: each would take the memory of the longest, and captions hold words of 10,000 letters.
    lower = [word.lower() for word in relations.words]
    place = {word: number for number, word in enumerate(sorted(set(lower)))}
    codes = np.array([place[word] for word in lower], dtype=np.int32)
    sides = []
    for surface, lemma in ((relations.subject, relations.subject_lemma), (relations.object, relations.object_lemma)):
        both, of_relation = np.unique(surface.astype(np.int64) << 32 | lemma, return_inverse=True)
        words = [relations.words[code] for code in both >> 32]
        lemmas = [relations.words[code] for code in both & 0xFFFFFFFF]
        sides.append(ratings.strict_of(words, lemmas)[of_relation])
    return Rated(codes[relations.subject_lemma], codes[relations.object_lemma], *sides)


def _images_of_each(subject: Codes, image: Codes) -> Codes:
    """How many different images the relations of each subject have."""
    return np.bincount(distinct(subject.astype(np.int64) << 32 | image) >> 32).astype(np.int32)


def _groups(ordered: NDArray[Any]) -> tuple[Codes, Codes, Codes]:
    """Of sorted values: where each different one begins, which of them each value is, and how often each comes."""
    new = first_of_each(ordered)
    start = np.flatnonzero(new).astype(np.int32)
    which = np.cumsum(new, dtype=np.int32) - 1
    return start, which, np.diff(start, append=np.int32(len(ordered))).astype(np.int32)


def funnel(pool: Pool) -> dict[str, int]:
    """What is left of the captions at each step up to the subjects that may be drawn, in that order."""
    relations = pool.relations
    found = {"captions": relations.captions, "captions with relations": relations.texts.num_rows}
    if pool.rules == "strict" and relations.facts is not None:
        found |= {"names of their images": relations.names, "photos, each of one name or more": relations.facts.photos}
    rated = int(((pool.subject_rating > 0) & (pool.object_rating > 0)).sum())
    return {
        **found,
        "relations": len(relations),
        **(pool.steps or {"relations with both words rated": rated}),
        "subjects": len(pool.images),
        "eligible subjects": int(pool.eligible.sum()),
        "relations of eligible subjects": int(pool.relations_count[pool.eligible].sum()),
    }
