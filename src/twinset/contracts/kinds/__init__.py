"""Kinds of samples: one module a kind has the JSON of its samples, and which images, texts and columns they have."""

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.template import TEMPLATE
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.kinds.triplet import TRIPLET

KINDS = {kind.name: kind for kind in (PAIR, TEXT_PAIR, TRIPLET, TEMPLATE, IMAGE_TEXT)}
