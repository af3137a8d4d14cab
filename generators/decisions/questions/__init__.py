"""The kinds of questions, one module each."""

from collections.abc import Mapping

from twinset.generators.decisions.question import ReviewQuestion
from twinset.generators.decisions.questions.best_image import BestImage
from twinset.generators.decisions.questions.fits_caption import FitsCaption
from twinset.generators.decisions.questions.keep_pair import KeepPair
from twinset.generators.decisions.questions.match import Match

#: By name.
QUESTIONS: Mapping[str, ReviewQuestion] = {one.name: one for one in (BestImage(), FitsCaption(), KeepPair(), Match())}
