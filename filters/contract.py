"""The contract that every filter keeps, as a check that any test can call."""

import math
import pickle
from collections.abc import Sequence
from typing import Any

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Score
from twinset.contracts.parts import Filter, check_settings
from twinset.shards.rows import VerdictCheck

CLOSE = 1e-3  # of scores of a network, which depend a little on what else is in a pass


def check_filter(settings: Filter, samples: Sequence[CaptionedCandidate] | Sequence[Frame] | Sequence[Pair]) -> None:
    """Raise AssertionError, or `shards.rows.BadVerdict`, when a filter does not keep it.

    Settings survive the way to a worker; reasons are explained; ``judges`` and ``open()`` agree; verdicts are what a
    build can use, and the same again, alone or in another order; samples are left as they are.

    Args:
        settings: whose models are at hand.
        samples: two or more that it judges differently: candidates with captions, frames or pairs, as `judges` says.
    """
    check_settings(settings)
    name = type(settings).__name__
    assert isinstance(settings.how_judged(), str), f"{name}.how_judged() gives no text; return empty for nothing"
    part: Any = settings.open()
    assert isinstance(getattr(part, "version", None), int), f"{type(part).__name__} has no version; set version = 1"
    assert len(samples) > 1, "give two or more samples that it judges differently"
    before = pickle.dumps(samples)
    if settings.judges == "captions":
        check = VerdictCheck(settings)
        for sample in samples:
            assert isinstance(sample, CaptionedCandidate)
            verdict = check.captions(sample, part.judge(sample))
            assert part.judge(sample) == verdict, f"{sample.key}: judged otherwise a second time; keep no state"
    else:
        verdicts = _verdicts(part, samples)
        _expect_unchanged(settings, before, samples)
        _expect_same(part, samples, verdicts, _verdicts(part, samples), "a second time")
        _expect_same(part, samples, verdicts, _verdicts(part, samples[::-1])[::-1], "in another order")
        alone = [_verdicts(part, [sample])[0] for sample in samples]
        _expect_same(part, samples, verdicts, alone, "alone")
        assert not _verdicts(part, []), "verdicts on no samples; return an empty list"
    _expect_unchanged(settings, before, samples)


def _expect_unchanged(settings: Filter, before: bytes, samples: Sequence[Any]) -> None:
    assert before == pickle.dumps(samples), f"{settings.kind} changes its samples; copy what it changes"


def _name(sample: Frame | Pair) -> str:
    return sample.id if isinstance(sample, Frame) else sample.key


def _verdicts(part: Filter, samples: Sequence[Any]) -> list[Any]:
    return list(VerdictCheck(part).each([_name(sample) for sample in samples], part.judge(samples)))


def _expect_same(part: Filter, samples: Sequence[Any], first: Sequence[Any], again: Sequence[Any], when: str) -> None:
    tolerance = 0.0 if part.runs_on() is None else CLOSE
    for sample, *verdicts in zip(samples, first, again, strict=True):
        (outcome, score), (outcome_again, score_again) = map(_parts, verdicts)
        same = outcome == outcome_again and math.isclose(score, score_again, rel_tol=tolerance, abs_tol=tolerance)
        problem = f"{verdicts[0]} at first, {verdicts[1]} {when}; a verdict depends on the sample alone"
        assert same, f"{_name(sample)}: {problem}"


def _parts(verdict: Any) -> tuple[Any, float]:
    """What a verdict says, and its number."""
    if isinstance(verdict, Drop):
        return ("drop", verdict.reason, verdict.score is None), verdict.score or 0.0
    return (("score", verdict.name), verdict.value) if isinstance(verdict, Score) else ("keep", 0.0)
