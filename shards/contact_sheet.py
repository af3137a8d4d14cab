"""A contact sheet: samples as pictures, so that a glance tells whether a subset is sound."""

from __future__ import annotations

from collections.abc import Sequence

from shards import template_block, triplet_block
from shards.pair_block import PairBlock
from shards.sheet import Block, draw_sheet
from shards.stored import Stored, StoredPair, StoredTriplet
from shards.template_block import TemplateBlock
from shards.triplet_block import TripletBlock


def contact_sheet(samples: Sequence[Stored], title: str, subtitle: str) -> bytes:
    """A PNG of samples of one kind in reading order, each with its key in small print.

    Raises `shards.tar_reader.BrokenTar` for an image that cannot be decoded.
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
