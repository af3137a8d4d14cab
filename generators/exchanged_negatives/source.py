"""Negative captions whose words come from other captions, as often as these have them (BiVLC, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, generator_for, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.parts import EXAMPLES
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import StageName
from twinset.generators.exchanged_negatives.changes import all_changes
from twinset.generators.exchanged_negatives.table import Sites, load_sites
from twinset.generators.exchanged_negatives.vocabulary import exchanges
from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.kinds import COLUMNS, KINDS, NegativeCaption
from twinset.generators.negative_captions.rules.nouns import Edit, edited
from twinset.generators.negative_captions.source import ChangedKind
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source

_TEXTS = ("caption_id", "image_id", "image", "caption")
_READ = (*TERMS, *_TEXTS, "kind", "word", "start", "end", "other_start", "other_end")


class ExchangedNegatives(Source):
    """Negative captions made of the words of all captions, so that a model without the image cannot tell them.

    A word is replaced by one that another caption gives away, adjectives and things are added that captions give to
    this noun or scene, two words of a caption change places; each as often as the captions themselves have it there.

    words: the stage of ``caption-words``, or the folder of a finished one. kinds: that are written. licence: of the
    captions.
    """

    kind: Literal["exchanged-negatives"]
    words: StageName
    kinds: tuple[ChangedKind, ...] = Field(default=get_args(ChangedKind), min_length=1)
    licence: str = ""

    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "exchanged-negatives")

    def how_made(self, reports: Mapping[str, Any]) -> str:
        return (
            f"Negative captions ({', '.join(kind.replace('_', ' ') for kind in self.kinds)}) take their words from "
            "other captions, each about as often as the captions themselves have it there."
        )

    version = 3
    candidate = NegativeCaption
    row_schema = COLUMNS
    libraries = ("numpy",)

    def inputs(self) -> str:
        """Digest of the table, and of the lists that say what may be added."""
        return digest([super().inputs(), exchanges().digest])

    def plan(self) -> Iterator[NegativeCaption]:
        """Captions in the order of the table. Raises `WrongUse` where nothing can change places."""
        sites = load_sites(self.earlier())
        new = self._changes(sites)
        words = iter(new[new >= 0].tolist())
        written = 0
        for batch in self.earlier().batches(_READ, new >= 0):
            for row in batch.to_pylist():
                text = _text(row, sites.names[next(words)])
                kind = KINDS[row["kind"]]
                if reason := problem(kind.type, row["caption"], text):
                    self.excluded.add(reason, f"{row['caption_id']}, {kind.name}: {text}")
                    continue
                written += 1
                group = sample_key(self.stage.name, row["caption_id"])
                yield NegativeCaption(
                    **self.identified(row["caption_id"], kind.name, group=group, shows=(Terms.of(row),)),
                    **{name: row[name] for name in _TEXTS},
                    negative_caption=text,
                    type=kind.type,
                    subtype=kind.subtype,
                )
        if not written:
            raise WrongUse(
                f"{self.earlier().where}: no words of its captions can change places; these are too few, too much "
                "alike or not in English: name more captions, or stage negative-captions, whose words come from lists"
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for one in cast(Sequence[NegativeCaption], candidates):
            yield TableRows(one.key, [one.row()])

    def _changes(self, sites: Sites) -> NDArray[np.int64]:
        """The number of its new word for each row, -1 where it stays; counts captions that a kind does not change."""
        new = np.full(len(sites.caption), -1, np.int64)
        left: dict[str, tuple[int, list[int]]] = {}
        for kind, change in all_changes(
            sites, self.kinds, generator_for(self.stage.seed, self.stage.name, "exchanges")
        ):
            new[change.rows] = change.words
            unchanged = np.setdiff1d(sites.caption, sites.caption[change.rows])
            left[f"no-{kind.replace('_', '-')}"] = len(unchanged), unchanged[:EXAMPLES].tolist()
        self._leave_out(sites, left)
        return new

    def _leave_out(self, sites: Sites, left: Mapping[str, tuple[int, Sequence[int]]]) -> None:
        """Count captions without a change by reason, and name the first of each."""
        named = sorted({number for _, numbers in left.values() for number in numbers})
        chosen = np.zeros(len(sites.caption), np.bool_)
        chosen[np.searchsorted(sites.caption, named)] = True
        ids = (str(one) for batch in self.earlier().batches(["caption_id"], chosen) for one in batch[0])
        id_of = dict(zip(named, ids, strict=True))
        for reason, (count, numbers) in left.items():
            for number in numbers:
                self.excluded.add(reason, f"caption {id_of[number]}")
            if count:
                self.excluded[reason] = count


def _text(row: Mapping[str, Any], word: str) -> str:
    caption, start, end, type_ = row["caption"], row["start"], row["end"], row["kind"].partition("_")[0]
    if type_ == "add":
        word = f"{word} " if row["kind"] == "add_att" else f" {word}"
    edits = [Edit(start, end, word)]
    if type_ == "swap":
        edits.append(Edit(row["other_start"], row["other_end"], row["word"]))
    return edited(caption, edits)
