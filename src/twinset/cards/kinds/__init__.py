"""What sheets, cards and metadata say of each kind of samples: one module a kind, found by the kind's name."""

from twinset.cards.kinds.image_text import IMAGE_TEXTS
from twinset.cards.kinds.kind import CardKind
from twinset.cards.kinds.pair import PAIRS
from twinset.cards.kinds.template import TEMPLATES
from twinset.cards.kinds.text_pair import TEXT_PAIRS
from twinset.cards.kinds.triplet import TRIPLETS

CARD_KINDS: dict[str, CardKind] = {
    kind.sample.name: kind for kind in (PAIRS, TEXT_PAIRS, TRIPLETS, TEMPLATES, IMAGE_TEXTS)
}
