"""The relations of a finished stage of scene graphs as columns, and what the strict rules ask of them besides words."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import PACKED, TERMS
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.scene_graphs.relations import PLURAL, SINGULAR
from twinset.generators.scene_graphs.source import (
    BACKDROP,
    CONFIRMED,
    CONTESTED,
    NEGATED,
    NO_RELATION,
    PHOTO,
    PLAIN,
    STAND_IN,
    TEXTS,
)
from twinset.generators.triplets.captions import Spoken
from twinset.generators.triplets.draws import NONE, Bools, Codes, Growing, distinct
from twinset.shards.finished_stage import FinishedStage

BLOCK = 1 << 16  # names that are looked at together


class Names:
    """Numbers of names: equal for equal ones, in the order in which each comes first.

    Names are compared by their hashes, and those of equal hashes by themselves: where two differ, all are hashed again
    with another beginning.

    numbers: of each name. different: how many different ones there are.
    """

    def __init__(self, names: pa.Array) -> None:
        self._names = names
        for attempt in count():
            self._salt = str(attempt or "")
            self._hashes, first, which = np.unique(self._hashed(names), return_index=True, return_inverse=True)
            if self._equal(names, first[which]):
                break
        self._first = first
        self._number = np.empty(len(first), dtype=np.int32)
        self._number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        self.numbers: Codes = self._number[which]
        self.different = len(first)

    def find(self, names: pa.Array) -> Codes:
        """The number of each of other names, `NONE` for one that is not there."""
        hashes = self._hashed(names)
        at = np.minimum(np.searchsorted(self._hashes, hashes), self.different - 1)
        there = np.flatnonzero(self._hashes[at] == hashes)
        found = np.full(len(names), NONE, dtype=np.int32)
        equal = pc.equal(names.take(pa.array(there)), self._names.take(pa.array(self._first[at[there]])))
        there = there[equal.to_numpy(zero_copy_only=False)]
        found[there] = self._number[at[there]]
        return found

    def _equal(self, names: pa.Array, same: NDArray[np.int64]) -> bool:
        """Whether each name equals the one at the place that is given for it."""
        others = np.flatnonzero(same != np.arange(len(names)))
        return all(names.take(pa.array(here)).equals(names.take(pa.array(same[here]))) for here in _blocks(others))

    def _hashed(self, names: pa.Array) -> NDArray[np.int64]:
        blocks = (names.slice(start, BLOCK).to_pylist() for start in range(0, len(names), BLOCK))
        hashes = (hash(f"{self._salt}{name}" if self._salt else name) for block in blocks for name in block)
        return np.fromiter(hashes, np.int64, len(names))


def _blocks(places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    yield from (places[start : start + BLOCK] for start in range(0, len(places), BLOCK))


#: Closed classes of words by which the strict rules judge relations; the file says what each is.
CLASSES = {
    name: frozenset(words.split())
    for name, words in load_yaml((VOCABULARIES / "relation_words.yaml").read_text("utf-8")).items()
}

PHRASES = frozenset({"next to", "in front of", "on top of", "outside of", "inside of", "close to"})


SUBJECT, OBJECT, NUMBER, VERB = "subject_pos", "object_pos", "subject_number", "verb"
PREDICATE, START = "predicate", "subject_start"
JUDGED = (NEGATED, BACKDROP, CONTESTED, STAND_IN, PLAIN, CONFIRMED)
COLUMNS = (PHOTO, SUBJECT, OBJECT, NUMBER, VERB, START, *JUDGED)
# Lists, not arrays: of the first that is made of one, pyarrow imports pandas.
NOUNS = ["NOUN", "PROPN"]
PLACED_BY = sorted(CLASSES["placing"])
NUMBERS = ["", SINGULAR, PLURAL]


@dataclass(frozen=True, slots=True)
class Facts:
    """One entry a relation in each array.

    photo: equal for relations of one photo, under whatever names its captions have it. nouns: whether both heads are
    nouns. number: grammatical number of the subject, a place in `NUMBERS`. negated, backdrop, contested, stand_in,
    plain, verb: as `generators.scene_graphs.relations.Grammar`; of the verb, whether there is one.
    begins: whether the caption begins with the subject.
    unplaced: whether the verb left out is needed to say where the subject is (``placing`` of `CLASSES`).
    confirmed: whether the second parser finds the relation too; None where the stage has no second parser.
    spoken: nouns of all captions, also of those without relations. photos: how many different ones.
    """

    photo: Codes
    nouns: Bools
    negated: Bools
    backdrop: Bools
    contested: Bools
    stand_in: Bools
    plain: Bools
    verb: Bools
    begins: Bools
    unplaced: Bools
    number: Codes
    confirmed: Bools | None
    spoken: Spoken
    photos: int


class FactColumns:
    """Collects `Facts` from the batches of an index."""

    def __init__(self) -> None:
        self._columns = {name: Growing(np.bool_) for name in ("nouns", "verb", "begins", "unplaced", *JUDGED)}
        self._numbers = Growing(np.int32)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        nouns = pc.and_(*(pc.is_in(batch[name], pa.array(NOUNS)) for name in (SUBJECT, OBJECT)))
        verb = pc.not_equal(batch[VERB], "")
        posing = pc.and_(pc.equal(pc.utf8_lower(batch[PREDICATE]), "with"), pc.equal(batch[VERB], "pose"))
        spared = pc.or_(pc.is_in(batch[VERB], pa.array(PLACED_BY)), posing)
        begins = pc.equal(batch[START], 0)
        found = {"nouns": nouns, "verb": verb, "begins": begins, "unplaced": pc.and_not(verb, spared)}
        found |= {name: batch[name] for name in JUDGED}
        for name, column in found.items():
            if column.null_count < len(column):
                self._columns[name].add(column.fill_null(False).to_numpy(zero_copy_only=False))
        self._numbers.add(pc.index_in(batch[NUMBER], pa.array(NUMBERS)).fill_null(0).to_numpy().astype(np.int32))

    def finish(
        self,
        graphs: FinishedStage,
        caption: Codes,
        captions: pa.Array,
        photo: Names,
        words: Sequence[str],
        forms: Iterable[tuple[str, str]],
    ) -> Facts:
        """What was collected.

        Args:
            graphs: the stage; its rejections hold the captions without relations.
            caption: of each relation, its place in ``captions``.
            captions: texts that have relations.
            photo: of each caption.
            words, forms: as `Spoken`.
        """
        rejected = graphs.rejected(("reason", "detail"))
        silent = rejected.filter(pc.equal(rejected["reason"], NO_RELATION))["detail"].combine_chunks()
        known = silent.filter(pc.match_substring(silent, "\t"))
        parts = pc.split_pattern(known, "\t", max_splits=1)
        place = photo.find(pc.list_element(parts, 0).cast(captions.type))
        here = place != NONE  # the others' photos have no relation at all
        photos = np.concatenate([photo.numbers, place[here]])
        texts = pa.chunked_array([captions, pc.list_element(parts, 1).filter(pa.array(here)).cast(captions.type)])
        spoken = Spoken(words, forms, photos, texts)
        confirmed = self._columns.pop(CONFIRMED).whole()
        return Facts(
            photo=photo.numbers[caption],
            number=self._numbers.whole(),
            confirmed=confirmed if len(confirmed) else None,
            spoken=spoken,
            photos=photo.different,
            **{name: column.whole() for name, column in self._columns.items()},
        )


WORDS = ("subject", "object", "subject_lemma", "object_lemma", "predicate", "predicate_lemma")


@dataclass(frozen=True, slots=True)
class Relations:
    """Every relation of the captions, in the order of the stage: one entry a relation in each array.

    subject, object, subject_lemma, object_lemma, predicate, predicate_lemma: numbers in ``words``, which is sorted.
    caption: row in ``texts``, the captions that have relations (columns `TEXTS`, and ``terms``). image: equal for
    relations of one image id. names: how many of these ids there are. captions: how many were parsed. facts: None
    where they were not asked for.
    """

    subject: Codes
    object: Codes
    subject_lemma: Codes
    object_lemma: Codes
    predicate: Codes
    predicate_lemma: Codes
    caption: Codes
    image: Codes
    words: list[str]
    texts: pa.Table
    captions: int
    names: int
    facts: Facts | None
    where: str = "the table of relations"

    def __len__(self) -> int:
        return len(self.subject)

    def texts_of(self, relation: Codes) -> dict[str, list[str]]:
        """What each of some relations says and where: surface words of subject, predicate and object, and `TEXTS` and
        packed terms of its caption; "" for `NONE`. Memory holds a text each."""
        texts = self.texts.take(pa.array(self.caption[relation]))
        columns = {name: texts[name].cast(pa.large_string()).to_pylist() for name in texts.column_names}
        for name, codes in (("subject", self.subject), ("predicate", self.predicate), ("object", self.object)):
            columns[name] = [self.words[code] for code in codes[relation].tolist()]
        missing = np.flatnonzero(relation == NONE).tolist()
        for column in columns.values():
            for place in missing:
                column[place] = ""
        return columns


def load_relations(graphs: FinishedStage, judged: bool = True) -> Relations:
    """The relations of a stage of scene graphs. judged: with facts: half of the time.

    Memory: 40 bytes a relation, 8 bytes a noun of a caption, and the captions with their ids and places, which
    are kept once where they are equal. Raises `WrongUse` when there is none.
    """
    columns = {name: Growing(np.int32) for name in (*WORDS, "caption")}
    facts = FactColumns() if judged else None
    texts: dict[str, list[pa.Array]] = {name: [] for name in (*TEXTS, *((PHOTO,) if facts else ()))}
    codes: dict[str, int] = {}
    terms: list[pa.Array] = []
    rows, last = 0, None
    for batch in graphs.batches((*TEXTS, *TERMS, *WORDS, *(COLUMNS if facts else ()))):
        if not len(batch):
            continue
        # Relations of one caption follow each other: a row with another caption than the one before begins the next.
        ids = batch["caption_id"]
        begins = np.ones(len(batch), dtype=np.bool_)
        begins[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
        begins[0] = ids[0].as_py() != last
        last = ids[-1].as_py()
        first = pa.array(np.flatnonzero(begins))
        for name in texts:
            # The web's images have one address as id, place and photo: it is kept once.
            same = name in (PHOTO, "image") and batch[name].equals(batch["image_id"])
            texts[name].append(texts["image_id"][-1] if same else batch[name].take(first).cast(pa.large_string()))
        packed = pc.binary_join_element_wise(*(batch[name] for name in TERMS), PACKED)
        terms.append(packed.take(first).dictionary_encode())
        columns["caption"].add((np.cumsum(begins) + (rows - 1)).astype(np.int32))
        rows += len(first)
        for name in WORDS:
            # A number a word; words that are new to all columns get the next.
            encoded = batch[name].dictionary_encode()
            known = [codes.setdefault(word, len(codes)) for word in encoded.dictionary.to_pylist()]
            columns[name].add(np.array(known, dtype=np.int32)[encoded.indices.to_numpy()])
        if facts:
            facts.add(batch)
    if not rows:
        raise WrongUse(f"{graphs.where}: no relation in its {graphs.record.planned} captions; name other captions")
    words = sorted(codes)
    place = np.empty(len(words), dtype=np.int32)  # of each number until now
    place[[codes[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    joined = {name: place[columns.pop(name).whole()] for name in WORDS}
    caption = columns.pop("caption").whole()
    pa.default_memory_pool().release_unused()  # of the batches
    same = [name for name, parts in texts.items() if all(map(operator.is_, parts, texts["image_id"]))]
    texts = {"image_id": texts["image_id"], **{name: texts[name] for name in texts if name not in same}}
    whole: dict[str, pa.Array] = {}
    while texts:  # one after the other, so that one alone is there twice
        name = next(iter(texts))
        whole[name] = pa.concat_arrays(texts.pop(name))
    pa.default_memory_pool().release_unused()
    whole |= dict.fromkeys(same, whole["image_id"])
    images = Names(whole["image_id"])
    photos = Names(whole[PHOTO]) if facts and PHOTO not in same else images
    packed = pa.chunked_array(terms).unify_dictionaries().combine_chunks()
    forms = {(words[one], words[lemma]) for one, lemma in _forms(joined)}
    return Relations(
        **joined,
        caption=caption,
        image=images.numbers[caption],
        words=words,
        texts=pa.table({**{name: whole[name] for name in TEXTS}, "terms": packed}),
        captions=graphs.record.planned,
        names=images.different,
        facts=facts.finish(graphs, caption, whole["caption"], photos, words, forms) if facts else None,
        where=graphs.where,
    )


def _forms(columns: Mapping[str, Codes]) -> Iterator[tuple[int, int]]:
    for name in ("subject", "object"):
        both = distinct(columns[name].astype(np.int64) << 32 | columns[f"{name}_lemma"])
        yield from zip((both >> 32).tolist(), (both & 0xFFFFFFFF).tolist(), strict=True)
