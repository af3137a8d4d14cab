"""The contract that every caption scorer keeps, as a check that any test can call."""

import re
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from twinset.contracts.parts import check_settings
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS, KINDS, Scorer, ScorerSettings

TEXTS = ("A man rides a horse.", "A dog, a cat, and a bird sit on a bench.", "Horse a rides man.", "A dog.")
CLOSE = 1e-3  # of scores of a network, which depend a little on what else is in a pass


def check_scorer(settings: ScorerSettings, texts: Sequence[str] = TEXTS) -> None:
    """Raise AssertionError when a caption scorer does not keep `ScorerSettings` and `Scorer`.

    Settings survive the way to a worker; title and score can be used; there is one number from 0 to 1, or one unit
    embedding, a text, the same in another order and alone.

    Args:
        settings: whose model is at hand.
        texts: distinct and not blank.
    """
    check_settings(settings)
    name, score = type(settings).__name__, getattr(settings, "score", "")
    assert getattr(settings, "title", ""), f"{name}.title is not set; it is a class variable of text"
    wrong = f"{name}.score {score!r} is no name of columns; take small letters, digits and underscores"
    assert re.fullmatch("[a-z][a-z0-9_]*", score) is not None, wrong
    own = {CAPTION_SCORERS.find(kind).score: kind for kind in KINDS}
    assert own.get(score, settings.kind) == settings.kind, f"{own.get(score)} gives a score {score!r} too; rename it"
    weights = settings.weights()
    scorer = settings.open("cpu")
    first = _scores(settings, scorer, texts, len(texts))
    for arrangement, scores in (
        ("in another order", _scores(settings, scorer, texts[::-1], len(texts))[::-1]),
        ("one text a pass", _scores(settings, scorer, texts, 1)),
    ):
        same = np.allclose(first, scores, rtol=0, atol=CLOSE if weights else 0)
        assert same, f"other scores {arrangement}; a score depends on its text alone"


def _scores(settings: ScorerSettings, scorer: Scorer, texts: Sequence[str], micro_batch: int) -> np.ndarray:
    from twinset.models.device import inference

    with inference(1) if "torch" in settings.libraries() else nullcontext():  # as in a build
        values = np.asarray(scorer(texts, micro_batch))
    assert len(values) == len(texts), f"{len(values)} values for {len(texts)} texts; give one each, in order"
    if settings.of_pairs:
        unit = values.ndim == 2 and np.allclose(np.linalg.norm(values, axis=1), 1, atol=CLOSE)
        assert unit, "of_pairs: values are not unit embeddings of shape (texts, channels)"
    else:
        inside = values.ndim == 1 and bool(((values >= 0) & (values <= 1)).all())
        assert inside, "values are not one number from 0 to 1 for each text"
    return values
