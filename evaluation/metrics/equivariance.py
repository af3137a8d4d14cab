"""EqBen's equivariance score (Figures 6 and 13): how unequally a model answers the same change in both directions.

EqSim v2 (Equation 6) asks s00 - s01 = s11 - s10 and s00 - s10 = s11 - s01. The score is what is missing from that,
0 at best. It is in units of the model's scores, so only models with one scale, such as fine-tuned ones, compare.
"""

from twinset.evaluation.score_files.batch import Floats

COLUMNS = ("s00", "s01", "s10", "s11")
DIRECTIONS = ("text", "image")


def equivariance(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> tuple[Floats, Floats]:
    """Equivariance scores of the change of text and of the change of image, in units of the scores; shape (n,) each."""
    return (s00 - s01) - (s11 - s10), (s00 - s10) - (s11 - s01)
