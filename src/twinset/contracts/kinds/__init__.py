"""Kinds of samples: one module a kind tells what its samples are, how they lie in a tar, and how they are read back."""

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.template import TEMPLATE
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.kinds.triplet import TRIPLET

KINDS = {kind.name: kind for kind in (PAIR, TEXT_PAIR, TRIPLET, TEMPLATE, IMAGE_TEXT)}
