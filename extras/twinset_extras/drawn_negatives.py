"""Negative captions drawn by prompt-to-prompt beside their captions (COCO-Counterfactuals, section 3; Img-Diff)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Literal

from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import StageName
from twinset.generators.negative_captions.changes import spans
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.prompt_to_prompt.source import DrawnPairs
from twinset.generators.prompt_to_prompt.vocabulary import EditedCandidate


class DrawnNegatives(DrawnPairs):
    """A pair a negative caption: its caption is drawn alone, the negative under the caption's attention.

    model, unet, resolution, precision: as `DiffusionModel`; device, threads: as `OnDevice`. steps, guidance, scheduler,
    cross_replace_steps, self_replace_steps, micro_batch, licence: as `DrawnPairs`.
    negatives: the stage of negative captions.
    """

    kind: Literal["drawn-negatives"]
    negatives: StageName

    @property
    def whose_captions(self) -> str:
        return f"captions and negative captions of the stage {self.negatives}"

    version = 4

    def inputs(self) -> str:
        return self.stage.earlier(self.negatives).digest

    def plan(self) -> Iterator[EditedCandidate]:
        """A drawing a row."""
        for batch in self.stage.earlier(self.negatives).batches(["identity", *TERMS, *COLUMNS.names]):
            for row in batch.to_pylist():
                captions = row["caption"], row["negative_caption"]
                old, new = zip(*spans(*captions), strict=True)
                yield EditedCandidate(
                    **self.identified(*json.loads(row["identity"]), shows=(Terms.of(row),)),
                    captions0=(captions[0],),
                    captions1=(captions[1],),
                    change=row["subtype"] or "edit",
                    words0=" ".join(chain.from_iterable(old)),
                    words1=" ".join(chain.from_iterable(new)),
                    plain=0,
                )
