"""The contract that every caption scorer keeps, as a check that any test can call."""

import re
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from twinset.contracts.doors import UnknownKind
from twinset.contracts.parts import called, check_settings, expect
from twinset.generators.caption_scores.scorers.scorer import Scored, Scorer, ScorerSettings, scorer_of

TEXTS = ("A man rides a horse.", "A dog, a cat, and a bird sit on a bench.", "Horse a rides man.", "A dog.")
CLOSE = 1e-3  # of scores of a network, which depend a little on what else is in a pass


def check_scorer(settings: ScorerSettings, texts: Sequence[str] = TEXTS) -> None:
    """Raise `contracts.parts.BrokenContract` when a caption scorer does not keep `ScorerSettings` and `Scorer`.

    Settings survive the way to a worker; score, title and reach can be used, and no other scorer gives the score; there
    is one finite number, or one unit embedding, a text, the same again, in another order and for other passes.

    Args:
        settings: whose model is at hand.
        texts: distinct and not blank.
    """
    check_settings(settings)
    name = type(settings).__name__
    title, score = getattr(settings, "title", ""), getattr(settings, "score", "")
    expect(isinstance(title, str) and bool(title), f"{name}.title is not set; it is a class variable of text")
    wrong = f"{name}.score {score!r} is no name of columns; take small letters, digits and underscores"
    expect(isinstance(score, str) and re.fullmatch("[a-z][a-z0-9_]*", score) is not None, wrong)
    expect(0 < settings.reach < float("inf"), f"{name}.reach is {settings.reach}; give the gap of the last bin")
    try:
        other, _ = scorer_of(score)
    except UnknownKind:  # its package is not installed
        other = settings.kind
    expect(other == settings.kind, f"{other} gives a score {score!r} too; rename {name}.score")
    weights = called(f"{settings.kind}: weights()", settings.weights)
    scorer = called(f"{settings.kind}: open()", lambda: settings.open("cpu"))
    first = _scores(settings, scorer, texts, settings.micro_batch)
    allowed = CLOSE if weights else 0.0
    for said, others in (
        ("a second time", _scores(settings, scorer, texts, settings.micro_batch)),
        ("in another order", _scores(settings, scorer, texts[::-1], settings.micro_batch)[::-1]),
        ("one text a pass", _scores(settings, scorer, texts, 1)),
    ):
        far = np.abs(first - others).reshape(len(texts), -1).max(axis=1) > allowed
        at = int(far.argmax())
        expect(not far.any(), f"{texts[at]!r}: other scores {said}; a score depends on its text alone")


def _scores(settings: ScorerSettings, scorer: Scorer, texts: Sequence[str], micro_batch: int) -> np.ndarray:
    from twinset.models.device import inference

    with inference(1) if "torch" in settings.libraries() else nullcontext():  # as in a build
        scored = called(f"{settings.kind}: a call", lambda: scorer(texts, micro_batch))
    expect(isinstance(scored, Scored), f"a call gives a {type(scored).__name__}; return Scored(values, truncated)")
    values, truncated = np.asarray(scored.values), np.asarray(scored.truncated)
    expect(truncated.shape == (len(texts),) and truncated.dtype == np.bool_, "truncated is not a bool for each text")
    expect(len(values) == len(texts), f"{len(values)} values for {len(texts)} texts; give one each, in order")
    expect(bool(np.isfinite(values).all()), "a value is not finite; only a text that holds nothing to score may be NaN")
    if settings.of_pairs:
        unit = values.ndim == 2 and np.allclose(np.linalg.norm(values, axis=1), 1, atol=CLOSE)
        expect(unit, "of_pairs: values are not unit embeddings of shape (texts, channels)")
    else:
        expect(values.ndim == 1, f"values have shape {values.shape}; give one number a text")
    inside = bool(((values >= 0) & (values <= 1)).all())
    expect(not settings.probability or inside, "probability: a value is not between 0 and 1")
    return values
