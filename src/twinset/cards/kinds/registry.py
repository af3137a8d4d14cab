"""What is known of each kind of samples, by its name."""

from typing import Any

from twinset.cards.kinds.image_text import IMAGE_TEXTS
from twinset.cards.kinds.kind import CardKind
from twinset.cards.kinds.pair import PAIRS
from twinset.cards.kinds.template import TEMPLATES
from twinset.cards.kinds.text_pair import TEXT_PAIRS
from twinset.cards.kinds.triplet import TRIPLETS

CARD_KINDS: dict[str, CardKind[Any]] = {
    kind.sample.name: kind for kind in (PAIRS, TEXT_PAIRS, TRIPLETS, TEMPLATES, IMAGE_TEXTS)
}
