"""The kinds of questions, one module each."""

from twinset.generators.decisions.question import ReviewQuestion
from twinset.manifests.doors import Registry

KINDS = {
    "best-image": "twinset.generators.decisions.questions.best_image:BestImage",
    "fits-caption": "twinset.generators.decisions.questions.fits_caption:FitsCaption",
    "keep-pair": "twinset.generators.decisions.questions.keep_pair:KeepPair",
    "match": "twinset.generators.decisions.questions.match:Match",
}
QUESTIONS = Registry[ReviewQuestion]("review question", ReviewQuestion, __name__, "twinset.questions")


def question_of(name: str) -> ReviewQuestion:
    """The question of a name; raises `UnknownKind`."""
    return QUESTIONS.find(name)()
