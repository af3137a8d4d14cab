"""Benchmarks of made pairs, of which a test knows what gives them away."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Grounding, LeftOut, Matching, Picture, Query


def _refuse(name: str) -> bytes:
    raise WrongUse(f"{name}: gone")


def unreadable(name: str) -> Picture:
    """An image whose file is gone."""
    return Picture(name, partial(_refuse, name))


NONE = unreadable("never read.jpg")


def pair(
    number: int, captions: tuple[str, str], images: tuple[Picture, ...] = (NONE,), group: str = "", **said: str
) -> Matching:
    """A matching; a group of its own unless it is said."""
    return Matching(
        key=f"k{number}",
        subset=said.get("subset", "made"),
        category=said.get("category", ""),
        group=group or f"g{number}",
        images=images,
        captions=captions,
    )


@dataclass
class Made:
    """A benchmark that lies in memory."""

    made: Sequence[Matching | Query | Grounding | LeftOut]
    name: str = "made"
    title: str = "Made (2026)"
    citation: str = ""
    metrics: tuple[str, ...] = ()
    asks: str = ""
    apart: bool = False

    def examples(self) -> Iterator[Matching | Query | Grounding | LeftOut]:
        """As `evaluation.examples.Benchmark.examples`."""
        yield from self.made

    def digest(self) -> str:
        """As `evaluation.examples.Benchmark.digest`."""
        return "0" * 64


NOUNS = ("dog", "cat", "bus", "tree", "boat", "lamp", "horse", "kite")
COLOURS = ("red", "blue", "green", "grey", "white", "black")


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Two captions each, made alike: nothing tells which comes first."""
    random = np.random.default_rng(seed)

    def sentence() -> str:
        one, other = random.choice(NOUNS, 2)
        return f"A {random.choice(COLOURS)} {one} beside a {random.choice(COLOURS)} {other}."

    return [(sentence(), sentence()) for _ in range(count)]
