"""The contract that every filter keeps, as a check that any test can call."""

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, Score
from twinset.contracts.parts import (
    Filter,
    called,
    check_settings,
    expect,
)
from twinset.shards.rows import VerdictCheck

CLOSE = 1e-3  # of scores of a network, which depend a little on what else is in a pass


def check_filter(settings: Filter, samples: Sequence[CaptionedCandidate] | Sequence[Frame] | Sequence[Pair]) -> None:
    """Raise `contracts.parts.BrokenContract`, or `shards.rows.BadVerdict`, when a filter does not keep it.

    Settings survive the way to a worker; reasons are explained; ``judges`` and ``open()`` agree; verdicts are what a
    build can use, and the same again, alone or in another order; samples are left as they are.

    Args:
        settings: whose models are at hand.
        samples: two or more that it judges differently: candidates with captions, frames or pairs, as `judges` says.
    """
    check_settings(settings)
    name = type(settings).__name__
    expect(isinstance(settings.how_judged(), str), f"{name}.how_judged() gives no text; return empty for nothing")
    part: Any = called(f"{settings.kind}: open()", settings.open)
    expect(isinstance(getattr(part, "version", None), int), f"{type(part).__name__} has no version; set version = 1")
    judge = part.judge
    before = _digest(samples)
    if settings.judges == "captions":
        check, found = VerdictCheck(settings), []
        for one in samples:
            assert isinstance(one, CaptionedCandidate)
            found.append(check.captions(one, called(f"{settings.kind}: a call", partial(judge, one))))
            expect(judge(one) == found[-1], f"{one.key}: judged otherwise a second time; keep no state")
    else:
        found = _verdicts(settings, judge, samples)
        _expect_unchanged(settings, before, samples)
        _expect_same(part, samples, found, _verdicts(settings, judge, samples), "a second time")
        _expect_same(part, samples, found, _verdicts(settings, judge, samples[::-1])[::-1], "in another order")
        alone = [_verdicts(settings, judge, [one])[0] for one in samples]
        _expect_same(part, samples, found, alone, "alone")
        expect(not _verdicts(settings, judge, []), "verdicts on no samples; return an empty list")
    _expect_unchanged(settings, before, samples)


def _expect_unchanged(settings: Filter, before: Sequence[str], samples: Sequence[Any]) -> None:
    expect(before == _digest(samples), f"{settings.kind} changes its samples; copy what it changes")


def _verdicts(settings: Filter, judge: Any, samples: Sequence[Any]) -> list[Any]:
    names = [one.id if isinstance(one, Frame) else one.key for one in samples]
    given: Any = called(f"{settings.kind}: a call", lambda: judge(samples))
    return list(VerdictCheck(settings).each(names, given))


def _expect_same(part: Filter, samples: Sequence[Any], first: Sequence[Any], other: Sequence[Any], when: str) -> None:
    for sample, one, two in zip(samples, first, other, strict=True):
        (said, score), (again, other_score) = _parts(one), _parts(two)
        tolerance = 0.0 if part.runs_on() is None else CLOSE
        same = said == again and math.isclose(score, other_score, rel_tol=tolerance, abs_tol=tolerance)
        name = sample.id if isinstance(sample, Frame) else sample.key
        expect(same, f"{name}: {one} at first, {two} {when}; a verdict depends on the sample alone")


def _parts(verdict: Any) -> tuple[Any, float]:
    """What a verdict says, and its number."""
    if isinstance(verdict, Drop):
        return ("drop", verdict.reason, verdict.score is None), verdict.score or 0.0
    if isinstance(verdict, Score):
        return ("score", verdict.name, verdict.flag), verdict.value
    assert isinstance(verdict, Keep)
    return "keep", 0.0


def _digest(samples: Sequence[Any]) -> list[str]:
    """Of all that a filter could change: pixels, captions, provenance and scores."""
    found = []
    for one in samples:
        frames = [one] if isinstance(one, Frame) else [one.image0, one.image1] if isinstance(one, Pair) else []
        pixels = [hashlib.sha256(frame.pixels.tobytes()).hexdigest() for frame in frames]
        words = [one.captions0, one.captions1, one.provenance, one.scores] if isinstance(one, Pair) else []
        found.append(repr([pixels, words, one if isinstance(one, CaptionedCandidate) else None]))
    return found
