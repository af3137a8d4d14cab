"""The relations of a finished stage of scene graphs, as columns of whole numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinset.generators.scene_graphs.source import TEXTS
from twinset.generators.triplets.draws import NONE, Codes, distinct
from twinset.generators.triplets.facts import COLUMNS, FactColumns, Facts
from twinset.manifests.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage

WORDS = ("subject", "object", "subject_lemma", "object_lemma", "predicate", "predicate_lemma")


@dataclass(frozen=True, slots=True)
class Relations:
    """Every relation of the captions, in the order of the stage: one entry a relation in each array.

    subject, object, subject_lemma, object_lemma, predicate, predicate_lemma: numbers in ``words``, which is sorted.
    caption: row in ``texts``, the captions that have relations (columns `TEXTS`). image: equal for relations of one
    image id. names: how many of these ids there are. captions: how many were parsed. facts: None for a table of an
    earlier version, which lacks their columns.
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
        """What each of some relations says and where: surface words of subject, predicate and object, and `TEXTS` of
        its caption; "" for `NONE`. Memory holds a text each."""
        texts = self.texts.take(pa.array(self.caption[relation]))
        columns = {name: texts[name].to_pylist() for name in TEXTS}
        for name, codes in (("subject", self.subject), ("predicate", self.predicate), ("object", self.object)):
            columns[name] = [self.words[code] for code in codes[relation].tolist()]
        missing = np.flatnonzero(relation == NONE).tolist()
        for column in columns.values():
            for place in missing:
                column[place] = ""
        return columns


def load_relations(graphs: FinishedStage) -> Relations:
    """The relations of a stage of scene graphs.

    Memory: 40 bytes a relation, 8 bytes a noun of a caption, and the captions with their ids and places. Raises
    `WrongUse` when there is none.
    """
    texts: dict[str, list[pa.Array]] = {name: [] for name in TEXTS}
    columns: dict[str, list[Codes]] = {name: [] for name in (*WORDS, "caption")}
    facts = FactColumns() if set(COLUMNS) <= set(graphs.columns()) else None
    codes: dict[str, int] = {}
    rows, last = 0, None
    for batch in graphs.batches((*TEXTS, *WORDS, *(COLUMNS if facts else ()))):
        if not len(batch):
            continue
        # Relations of one caption follow each other: a row with another caption than the one before begins the next.
        ids = batch["caption_id"]
        begins = np.ones(len(batch), dtype=np.bool_)
        begins[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
        begins[0] = ids[0].as_py() != last
        last = ids[-1].as_py()
        first = pa.array(np.flatnonzero(begins))
        for name in TEXTS:
            texts[name].append(batch[name].take(first).cast(pa.large_string()))
        columns["caption"].append((np.cumsum(begins) + (rows - 1)).astype(np.int32))
        rows += len(first)
        for name in WORDS:
            # A number a word; words that are new to all columns get the next.
            encoded = batch[name].dictionary_encode()
            known = [codes.setdefault(word, len(codes)) for word in encoded.dictionary.to_pylist()]
            columns[name].append(np.array(known, dtype=np.int32)[encoded.indices.to_numpy()])
        if facts:
            facts.add(batch)
    if not rows:
        raise WrongUse(f"{graphs.where}: no relation in its {graphs.record.planned} captions; name other captions")
    words = sorted(codes)
    place = np.empty(len(words), dtype=np.int32)  # of each number until now
    place[[codes[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    joined = {name: place[np.concatenate(columns.pop(name))] for name in WORDS}
    caption = np.concatenate(columns.pop("caption"))
    image_ids = pa.concat_arrays(texts.pop("image_id")).dictionary_encode()
    whole = {"image_id": image_ids}
    for name in list(texts):
        whole[name] = pa.concat_arrays(texts.pop(name))  # one after the other, so that one alone is there twice
    forms = {(words[one], words[lemma]) for one, lemma in _forms(joined)}
    return Relations(
        **joined,
        caption=caption,
        image=image_ids.indices.to_numpy().astype(np.int32)[caption],
        words=words,
        texts=pa.table({name: whole[name] for name in TEXTS}),
        captions=graphs.record.planned,
        names=len(image_ids.dictionary),
        facts=facts.finish(graphs, caption, whole["caption"], words, forms) if facts else None,
        where=graphs.where,
    )


def _forms(columns: Mapping[str, Codes]) -> Iterator[tuple[int, int]]:
    """The different pairs of a noun as written and its lemma."""
    for name in ("subject", "object"):
        both = distinct(columns[name].astype(np.int64) << 32 | columns[f"{name}_lemma"])
        yield from zip((both >> 32).tolist(), (both & 0xFFFFFFFF).tolist(), strict=True)
