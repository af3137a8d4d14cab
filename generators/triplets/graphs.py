"""The relations of a folder that ``twinset parse`` wrote, as columns of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from generators.scene_graphs.caption_plan import read_captions
from generators.scene_graphs.progress import AGAIN, graph_progress, holds_graphs, read_plan
from generators.scene_graphs.record import INDEX, Index, relations_file
from manifests.errors import BuildFailed, WrongUse
from manifests.parquet import read_parquet
from manifests.plan import PlannedShard
from shards.storage.store import Store

Codes = NDArray[np.int32]
WORDS = ("subject", "object", "subject_lemma", "object_lemma", "predicate")
TEXTS = ("caption_id", "image_id", "caption", "image")


@dataclass(frozen=True, slots=True)
class Relations:
    """Every relation of the captions, in the order of the files: one entry a relation in each array.

    subject, object, subject_lemma, object_lemma, predicate: numbers in ``words``, which is sorted. caption: row in
    ``texts``, the captions that have relations (columns `TEXTS`). image: equal for relations of one image.
    captions: how many were parsed. digest: of the index of the folder.
    """

    subject: Codes
    object: Codes
    subject_lemma: Codes
    object_lemma: Codes
    predicate: Codes
    caption: Codes
    image: Codes
    words: list[str]
    texts: pa.Table
    captions: int
    digest: str

    def __len__(self) -> int:
        return len(self.subject)


def load_relations(graphs: str) -> Relations:
    """The relations below a folder or fsspec URL, held against their receipts.

    Memory: 28 bytes a relation, and the captions with their ids and places. Raises `WrongUse` when ``twinset parse``
    did not write or did not finish the folder, or it was changed since.
    """
    store = Store(graphs)
    index, planned = _whole(store)
    texts: dict[str, list[pa.Array]] = {name: [] for name in TEXTS}
    columns: dict[str, list[Codes]] = {name: [] for name in (*WORDS, "caption")}
    codes: dict[str, int] = {}
    rows = 0
    for shard in planned:
        try:
            captions = read_captions(store, shard)
        except BuildFailed as error:
            raise WrongUse(str(error)) from error
        with store.open(relations_file(shard.shard)) as stream:
            found = read_parquet(stream, ("caption_id", *WORDS))
        at = pc.index_in(found["caption_id"].combine_chunks(), value_set=pa.array(captions["caption_id"]))
        used, row = np.unique(at.to_numpy(), return_inverse=True)
        for name in TEXTS:
            texts[name].append(pa.array(captions[name], pa.large_string()).take(pa.array(used)))
        columns["caption"].append((row + rows).astype(np.int32))
        rows += len(used)
        for name in WORDS:
            columns[name].append(_coded(found[name], codes))
    words, place = _sorted(codes)
    joined = {name: place[np.concatenate(columns.pop(name))] for name in WORDS}
    caption = np.concatenate(columns.pop("caption"))
    ids = pa.concat_arrays(texts.pop("image_id")).dictionary_encode()
    whole = {"image_id": ids}
    for name in list(texts):
        whole[name] = pa.concat_arrays(texts.pop(name))  # one after the other, so that one alone is there twice
    return Relations(
        **joined,
        caption=caption,
        image=ids.indices.to_numpy().astype(np.int32)[caption],
        words=words,
        texts=pa.table({name: whole[name] for name in TEXTS}),
        captions=index.captions,
        digest=index.digest,
    )


def _whole(store: Store) -> tuple[Index, list[PlannedShard]]:
    """The index below a root, and the shards that it counts, all of which are done."""
    if not holds_graphs(store):
        raise WrongUse(f"{store.root}: no folder of twinset parse; run twinset parse CAPTIONS --to DIR first")
    try:
        record, planned = read_plan(store)
    except WrongUse as error:
        raise WrongUse(f"{store.root}: {error}") from error
    state = graph_progress(store, record, planned)
    if state.stale:
        number, why = min(state.stale.items())
        raise WrongUse(f"{store.root}: shard {number:05d}: {why}; {AGAIN}")
    if state.missing or store.size(INDEX) is None:
        raise WrongUse(f"{store.root}: not parsed to the end; {AGAIN}")
    index = state.index()
    if store.read(INDEX) != index.to_bytes():
        raise WrongUse(f"{store.root}/{INDEX}: not what the receipts add up to; {AGAIN}")
    if not index.relations:
        raise WrongUse(f"{store.root}: no relation in its {index.captions} captions; name other captions")
    return index, planned


def _coded(column: pa.ChunkedArray, codes: dict[str, int]) -> Codes:
    """A number a word; words that are new to ``codes`` get the next."""
    encoded = column.combine_chunks().dictionary_encode()
    known = [codes.setdefault(word, len(codes)) for word in encoded.dictionary.to_pylist()]
    numbers: Codes = np.array(known, dtype=np.int32)[encoded.indices.to_numpy()]
    return numbers


def _sorted(codes: dict[str, int]) -> tuple[list[str], Codes]:
    """The words sorted, and for each number that a word had until now its place among them."""
    words = sorted(codes)
    place = np.empty(len(words), dtype=np.int32)
    place[[codes[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    return words, place
