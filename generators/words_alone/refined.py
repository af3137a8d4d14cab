"""Adversarial filtering: negatives that words tell are left out until words tell little (AFLite, Le Bras et al. 2020).

A linear model on words and pairs of words, asked out of fold, says how much more each negative looks like one than its
caption does. The share `CUT` of a kind for which it says so most is left out, pair by pair, and the model is trained
again. Negatives and captions of one length weigh the same: additions are longer than their captions, and the unpaired
probe compares them with others.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.markdown import table
from twinset.contracts.parts import EXAMPLES
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, StageName
from twinset.generators.blind_attacks import kinds_of
from twinset.generators.negative_captions.changes import words
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.papers import BIVLC
from twinset.generators.words_alone.probe import LEAST, Probed, as_percent, out_of_fold, probed, said, word_counts
from twinset.models.device import check_installed
from twinset.shards.contracts import Source, StageGenerator

WORDS = "words.json"
CUT = 0.1  # of the pairs of a kind, left out at a time
TRAINED = 20_000  # pairs that a model is trained on, at most
AGAIN = 3  # draws of the probe whose mean says how well words tell


class RefinedNegatives(Source):
    """Of each kind the negative captions that words alone hardly tell from true ones; of any engine.

    negatives: the stage of negative captions, or the folder of a finished one.
    area: that the area under the unpaired probe's curve may have; 0.5 is chance. A kind that has fewer than 100 pairs
    before it comes so low is left out. licence: of the captions.
    """

    kind: Literal["refined-negatives"]
    negatives: StageName
    area: float = Field(default=0.56, gt=0.5, le=1)
    licence: str = ""

    generator = "twinset.generators.words_alone.refined:RefinedGenerator"
    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "selected from"
    reports = (WORDS,)
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "refined-negatives")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        check_installed(key, ("sklearn",), "models")

    def how_made(self, reports: Mapping[str, Any]) -> str:
        if WORDS not in reports:
            return ""
        rows = [
            (
                kind.replace("_", " "),
                *(f"{one['pairs']:,}" for one in both),
                *(said(one["auc"]) for one in both),
                *(as_percent(one["paired"]) for one in both),
            )
            for kind, both in reports[WORDS].items()
        ]
        heads = ("kind", "pairs", "kept", "unpaired", "of kept", "paired", "of kept")
        return (
            f"Filtered until the area under the unpaired probe's curve was at most {self.area:g} (0.5 is chance). The "
            f"paired probe is shown both captions.\n\n{table(heads, rows)}"
        )


class RefinedGenerator(StageGenerator[RefinedNegatives]):
    """Plans a row for each negative that stays, with the identity that it has in the earlier table."""

    version = 2
    candidate = NegativeCaption
    columns = COLUMNS
    libraries = ("numpy", "scikit-learn")

    def reports(self) -> Mapping[str, bytes]:
        """``words.json``: by kind, pairs and what words tell of them, before and after."""
        told = {kind: [_as_json(one) for one in both] for kind, both in self._refined[1].items()}
        return {WORDS: canonical_json(told) + b"\n"}

    def plan(self) -> Iterator[NegativeCaption]:
        """Rows in the order of the earlier table. Raises `WrongUse` where nothing is left."""
        kept, found = self._refined
        if not kept.any():
            counted = ", ".join(f"{kind or 'of no kind'} {before.pairs:,}" for kind, (before, _) in found.items())
            raise WrongUse(
                f"{self.earlier.where}: words tell the negatives of every kind until fewer than {LEAST} are left "
                f"({counted or 'it has none'}); name more captions, a higher area, or other negatives"
            )
        for row in islice((one for batch in self.earlier.batches(["identity"], ~kept) for one in batch[0]), EXAMPLES):
            self.excluded.add("known-by-words", f"{self.source.negatives} {row}")
        if lost := int((~kept).sum()):
            self.excluded["known-by-words"] = lost
        for batch in self.earlier.batches(["identity", "group", *TERMS, *COLUMNS.names], kept):
            for row in batch.to_pylist():
                identity, group, shows = json.loads(row.pop("identity")), row.pop("group"), (Terms.taken(row),)
                yield NegativeCaption(**self.identified(*identity, group=group, shows=shows), **row)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for one in cast(Sequence[NegativeCaption], candidates):
            yield TableRows(one.key, [one.row()])

    @cached_property
    def _refined(self) -> tuple[NDArray[np.bool_], dict[str, tuple[Probed, Probed]]]:
        """Whether each row stays, and by kind what words tell before and after; memory: the texts, twice those
        of one kind."""
        rows = self.earlier.read(["caption", "negative_caption", "type", "subtype"])
        kept, found = np.zeros(len(rows), np.bool_), dict[str, tuple[Probed, Probed]]()
        coded = kinds_of(rows["type"], rows["subtype"]).combine_chunks().dictionary_encode()
        for code, kind in enumerate(coded.dictionary.to_pylist()):
            here = np.flatnonzero(coded.indices.to_numpy() == code)
            texts = [rows[name].take(pa.array(here)).to_pylist() for name in ("caption", "negative_caption")]
            random = generator_for(self.seed, self.name, kind)
            stay = refined(texts[0], texts[1], self.source.area, random)
            kept[here[stay]] = True
            seed = int(random.integers(2**31))
            found[kind] = _counted(texts, np.arange(len(here)), seed), _counted(texts, stay, seed)
        return kept, found


def refined(
    captions: Sequence[str], negatives: Sequence[str], area: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """Places of the pairs of one kind that stay; none where fewer than `LEAST` would.

    Args:
        captions, negatives: of pairs.
        area: that the unpaired probe's area under the curve may have, as a mean of `AGAIN` draws.
        random: of draws, folds and halves.
    """
    stay = np.arange(len(captions))
    groups = pa.array(captions, pa.string()).dictionary_encode().indices.to_numpy()
    while len(stay) >= LEAST:
        told = [_counted((captions, negatives), stay, int(random.integers(2**31))).auc for _ in range(AGAIN)]
        areas = [one for one in told if one is not None]
        if len(areas) < AGAIN:
            break
        if sum(areas) / AGAIN <= area:
            return stay
        sides = [[texts[place] for place in stay.tolist()] for texts in (captions, negatives)]
        stay = stay[_told_least(sides[0], sides[1], groups[stay], random)]
    return stay[:0]


def _told_least(
    captions: Sequence[str], negatives: Sequence[str], groups: NDArray[np.intp], random: np.random.Generator
) -> NDArray[np.int64]:
    """Places without the share `CUT` whose negative looks most like one, beside its caption."""
    count = len(captions)
    order, gaps = random.permutation(count), np.empty(count)
    for some in np.array_split(order, -(-count // TRAINED)):
        texts = [side[place] for side in (captions, negatives) for place in some.tolist()]
        labels = np.repeat([0, 1], len(some))
        weights = _by_length(np.array([len(words(text)) for text in texts]), labels)
        scores = out_of_fold(word_counts(texts), labels, np.tile(groups[some], 2), random, weights)
        scores[weights == 0] = 0  # no probe compares it
        # Rounded: the last bits depend on the processor, and what is left out must not.
        gaps[some] = np.round(scores[len(some) :] - scores[: len(some)], 3)
    return np.sort(np.argsort(gaps, kind="stable")[: count - max(1, int(CUT * count))])


def _by_length(lengths: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights that make both labels weigh as much among texts of each length, the scarcer one 1 a text."""
    counts = np.array([np.bincount(lengths[labels == one], minlength=int(lengths.max()) + 1) for one in (0, 1)])
    found: NDArray[np.float64] = counts.min(0)[lengths] / counts[labels, lengths]
    return found


def _counted(texts: Sequence[Sequence[str]], places: NDArray[np.int64], seed: int) -> Probed:
    """What words tell of all pairs at places, counted as they are."""
    captions, negatives = ([side[place] for place in places.tolist()] for side in texts)
    one = probed(captions, negatives, seed)
    return Probed(len(places), one.auc, one.paired)


def _as_json(one: Probed) -> dict[str, Any]:
    rounded = {name: round(value, 3) for name, value in (("auc", one.auc), ("paired", one.paired)) if value is not None}
    return {"pairs": one.pairs, "auc": None, "paired": None, **rounded}
