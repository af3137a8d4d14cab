"""An objective and a regulariser by the places of their classes, so that settings are checked without torch."""

from twinset.training.losses.names import Objective, Regulariser

PAIRED = Objective("mylab.loss_classes:Paired", ("image", "text", "negative_image", "negative_text"))
SPREAD = Regulariser("mylab.loss_classes:Spread", weight=0.125)
