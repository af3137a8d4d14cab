"""Shares of right answers, with the interval that chance allows them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

NORMAL_95 = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Share:
    """right of ``of`` independent trials."""

    right: int
    of: int

    @classmethod
    def count(cls, answers: Iterable[bool]) -> Self:
        """The share of answers that are right."""
        listed = list(answers)
        return cls(sum(listed), len(listed))

    @property
    def value(self) -> float:
        """0..1; not a number without trials."""
        return self.right / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % score interval (Wilson 1927), which stays within 0..1. With p = right / of, n = of, z = NORMAL_95:

        (p + z² / 2n ± z sqrt(p (1 - p) / n + z² / 4n²)) / (1 + z² / n)
        """
        if not self.of:
            return 0.0, 1.0
        z2 = NORMAL_95**2
        centre = (self.right + z2 / 2) / (self.of + z2)
        half = NORMAL_95 / (self.of + z2) * math.sqrt(self.right * (self.of - self.right) / self.of + z2 / 4)
        return max(0.0, centre - half), min(1.0, centre + half)

    def as_json(self) -> dict[str, float | int]:
        """Counts, share and interval, as reports keep them."""
        low, high = (round(end, 4) for end in self.interval)
        share = round(self.value, 4) if self.of else 0.0
        return {"right": self.right, "of": self.of, "share": share, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.value:5.1f} % ({100 * low:.1f}-{100 * high:.1f}) of {self.of}"
