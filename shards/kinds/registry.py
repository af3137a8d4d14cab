"""The kinds of samples by name. A source's ``makes`` is one of these, or ``table``, which has no samples."""

from __future__ import annotations

from shards.kinds.pair import PAIR
from shards.kinds.template import TEMPLATE
from shards.kinds.text_pair import TEXT_PAIR
from shards.kinds.triplet import TRIPLET

KINDS = {kind.name: kind for kind in (PAIR, TEXT_PAIR, TRIPLET, TEMPLATE)}
