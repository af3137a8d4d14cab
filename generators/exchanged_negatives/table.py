"""The table of `caption-words` in memory, as columns of numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from twinset.generators.exchanged_negatives.choice import Ints, PairCounts
from twinset.generators.exchanged_negatives.company import Company, Seen
from twinset.generators.exchanged_negatives.words import SAID
from twinset.shards.finished_stage import FinishedStage

_TEXTS = ("image_id", "kind", "pool", "word", "name", "before", "after", "head", "other", "other_head")


@dataclass
class Sites:
    """The table in columns of numbers.

    names: of all texts, which all columns but `size` number alike. caption: of each row.
    """

    names: list[str]
    columns: Mapping[str, Ints]
    caption: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Words of each caption."""
        return self.columns["size"][self.of(SAID)]

    def of(self, *kinds: str) -> Ints:
        """The rows of kinds."""
        known = [self._numbers[kind] for kind in kinds if kind in self._numbers]
        return np.flatnonzero(np.isin(self.columns["kind"], known))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def all_said(self) -> tuple[Ints, Ints]:
        """Captions, and each name that they say, in the order of captions."""
        rows = self.of(SAID)
        met = [
            [self._numbers[one] for one in self.names[word].split() if one in self._numbers]
            for word in self.columns["word"][rows].tolist()
        ]
        captions = np.repeat(self.caption[rows], [len(one) for one in met])
        return captions, np.fromiter(chain.from_iterable(met), np.int64, len(captions))

    @cached_property
    def company(self) -> Company:
        """What captions name together, of things that may be put in."""
        rows = self.of(SAID)
        named = [self.names[name].split() for name in self.columns["name"][rows].tolist()]
        things = np.unique(self.columns["name"][self.of("replace_obj", "given_obj")])
        return Company(things, named, self.names, self.columns["image_id"][rows])

    @cached_property
    def seen(self) -> Seen:
        """How surely captions of a photo name what it shows."""
        return Seen(self.columns["image_id"][self.of(SAID)], *self.all_said)

    @cached_property
    def said(self) -> PairCounts:
        """Counts of (photo, name) that captions say."""
        captions, names = self.all_said
        return PairCounts(self.columns["image_id"][self.of(SAID)][captions], names, len(self.names))


def load_sites(earlier: FinishedStage) -> Sites:
    """Read a table of `caption-words`; memory: some 100 bytes a row, and its distinct texts."""
    codes: dict[str, int] = {}
    parts: dict[str, list[Ints]] = {name: [np.empty(0, np.int64)] for name in (*_TEXTS, "size", "caption")}
    captions, last = 0, None
    for batch in earlier.batches(("caption_id", "size", *_TEXTS)):
        parts["size"].append(batch["size"].to_numpy().astype(np.int64))
        for name in _TEXTS:
            parts[name].append(_coded(batch[name], codes))
        ids = batch["caption_id"].dictionary_encode()
        places = ids.indices.to_numpy()
        begins = np.r_[ids.dictionary[0].as_py() != last, places[1:] != places[:-1]]
        parts["caption"].append(captions + np.cumsum(begins) - 1)
        captions += int(begins.sum())
        last = ids.dictionary[int(places[-1])].as_py()
    whole = {name: np.concatenate(some) for name, some in parts.items()}
    return Sites(list(codes), {name: whole[name] for name in (*_TEXTS, "size")}, whole["caption"])


def _coded(texts: pa.Array, codes: dict[str, int]) -> Ints:
    encoded = texts.dictionary_encode()
    known = np.array([codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()], np.int64)
    found: Ints = known[encoded.indices.to_numpy()]
    return found
