"""What is known of each kind of samples, by its name."""

from __future__ import annotations

from typing import Any

from cards.kinds.kind import CardKind
from cards.kinds.pair import PAIRS
from cards.kinds.template import TEMPLATES
from cards.kinds.text_pair import TEXT_PAIRS
from cards.kinds.triplet import TRIPLETS

CARD_KINDS: dict[str, CardKind[Any]] = {kind.sample.name: kind for kind in (PAIRS, TEXT_PAIRS, TRIPLETS, TEMPLATES)}
