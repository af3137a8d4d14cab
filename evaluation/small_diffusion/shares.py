"""Shares of right answers with what chance allows them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Share:
    """right of ``of`` independent trials."""

    right: int
    of: int

    @classmethod
    def count(cls, answers: Iterable[bool]) -> Share:
        """Of answers, how many are right."""
        listed = list(answers)
        return cls(sum(listed), len(listed))

    @property
    def value(self) -> float:
        """0..1; not a number without trials."""
        return self.right / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % score interval (Wilson 1927), which stays within 0..1 and holds for shares near them too."""
        if not self.of:
            return 0.0, 1.0
        z2 = NORMAL_95**2
        centre = (self.right + z2 / 2) / (self.of + z2)
        half = NORMAL_95 / (self.of + z2) * math.sqrt(self.right * (self.of - self.right) / self.of + z2 / 4)
        return max(0.0, centre - half), min(1.0, centre + half)

    def as_json(self) -> dict[str, float | int]:
        """Numbers as reports keep them."""
        low, high = self.interval
        return {"right": self.right, "of": self.of, "share": round(self.value, 4) if self.of else 0.0} | {
            "low": round(low, 4),
            "high": round(high, 4),
        }

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.value:5.1f} % ({100 * low:.1f}-{100 * high:.1f}) of {self.of}"
