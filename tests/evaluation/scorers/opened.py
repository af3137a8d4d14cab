"""What tests of scorers open and encode."""

from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Composer, DualEncoder, Matcher, Running

TEXTS = ["a cat on the mat.", "the red dog", "a blue cat " * 20]
FAST = Running(batch=4, threads=1)


def encoder(text: str) -> DualEncoder:
    found = open_model(text, FAST)
    assert isinstance(found, DualEncoder) and not isinstance(found, Matcher | Composer)
    return found
