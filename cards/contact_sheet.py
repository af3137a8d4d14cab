"""A contact sheet: samples as pictures, so that a glance tells whether a subset is sound."""

from __future__ import annotations

from collections.abc import Sequence

from cards.kinds import template_block, triplet_block
from cards.kinds.pair_block import PairBlock
from cards.kinds.template_block import TemplateBlock
from cards.kinds.triplet_block import TripletBlock
from cards.sheet import Block, draw_sheet
from shards.kinds.kind import Stored
from shards.kinds.reading import StoredPair, StoredTriplet


def contact_sheet(samples: Sequence[Stored], title: str, subtitle: str) -> bytes:
    """A PNG of samples of one kind in reading order, each with its key in small print.

    Raises `shards.storage.tar_reader.BrokenTar` for an image that cannot be decoded.
    """
    return draw_sheet([_block(sample) for sample in samples], title, subtitle, _legend(samples))


def _block(sample: Stored) -> Block:
    if isinstance(sample, StoredPair):
        return PairBlock(sample)
    return TripletBlock(sample) if isinstance(sample, StoredTriplet) else TemplateBlock(sample)


def _legend(samples: Sequence[Stored]) -> str:
    if not samples or isinstance(samples[0], StoredPair):
        return ""
    return triplet_block.LEGEND if isinstance(samples[0], StoredTriplet) else template_block.LEGEND
