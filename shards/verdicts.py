"""What filters say, checked where it is used: one verdict each, declared reasons, finite numbers, scores for all."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from twinset.manifests.candidate import CaptionedCandidate
from twinset.manifests.errors import BuildFailed
from twinset.manifests.source import FILTERS, FilterSettings
from twinset.shards.kinds.samples import Drop, Keep, Score, Verdict


class BadVerdict(BuildFailed):
    """A filter does not keep the contract of `shards.contracts`; the message names filter, sample and remedy."""


class VerdictCheck:
    """Checks what one filter says of the samples of one shard. settings: of the filter."""

    def __init__(self, settings: FilterSettings) -> None:
        self.kind = settings.kind
        self._settings = settings
        self._scored: tuple[str, str | None] | None = None  # the first that was kept, and the name of its score

    def each(self, keys: Sequence[str], verdicts: Any) -> Sequence[Verdict]:
        """The verdicts, one on each key; raises `BadVerdict` for any that the build cannot use."""
        first = keys[0] if keys else "no sample"
        if not isinstance(verdicts, Sequence):
            self._refuse(first, f"a {type(verdicts).__name__}, not a list of verdicts; return one each, in order")
        if len(verdicts) != len(keys):
            self._refuse(first, f"{len(verdicts)} verdicts on {len(keys)} from this on; return one each, in order")
        for key, verdict in zip(keys, verdicts, strict=True):
            self._check(key, verdict)
        return verdicts

    def captions(self, candidate: CaptionedCandidate, judged: Any) -> CaptionedCandidate | Drop:
        """As `each`, of a filter of captions."""
        if isinstance(judged, Drop):
            self._check(candidate.key, judged)
            return judged
        if isinstance(judged, CaptionedCandidate) and judged.key == candidate.key:
            return judged
        found = judged.key if isinstance(judged, CaptionedCandidate) else type(judged).__name__
        self._refuse(candidate.key, f"answered by {found}; return this candidate with fewer captions, or a Drop")

    def added(self, key: str, scores: dict[str, float], name: str, value: float) -> None:
        """Add a score to those of a sample; raises `BadVerdict` where it has one of this name."""
        if name in scores:
            self._refuse(key, f"has a score {name!r} already; name this one otherwise, or name the filter once")
        scores[name] = value

    def _check(self, key: str, verdict: Any) -> None:
        if not isinstance(verdict, Keep | Drop | Score):
            self._refuse(key, f"a {type(verdict).__name__}, not a Keep, Drop or Score; return one verdict a sample")
        reason = verdict.reason if isinstance(verdict, Drop) else verdict.flag if isinstance(verdict, Score) else ""
        if reason not in self._settings.meanings and (reason or isinstance(verdict, Drop)):
            self._refuse(key, f"reason {reason!r} is not explained; add it to {type(self._settings).__name__}.reasons")
        number = verdict.score if isinstance(verdict, Drop) else verdict.value if isinstance(verdict, Score) else None
        if number is not None or isinstance(verdict, Score):
            if not isinstance(number, float):
                self._refuse(key, f"a score of type {type(number).__name__}; give a Python float: float(score)")
            if not math.isfinite(number):
                self._refuse(key, f"a score of {number}; drop the sample, or give a finite number")
        if not isinstance(verdict, Drop):
            self._same_score(key, verdict.name if isinstance(verdict, Score) else None)

    def _same_score(self, key: str, name: str | None) -> None:
        """Loaders need the same keys in the JSON of every sample."""
        self._scored = self._scored or (key, name)
        if name != self._scored[1]:
            said = [f"scored as {one!r}" if one else "not scored" for one in (name, self._scored[1])]
            self._refuse(key, f"{said[0]}, and {self._scored[0]} {said[1]}; score all that is kept, by one name")

    def _refuse(self, key: str, problem: str) -> NoReturn:
        raise BadVerdict(f"{FILTERS.named(self.kind)}: {key}: {problem}")
