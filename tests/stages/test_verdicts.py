"""What a filter says is checked when it says it; the error names the filter, the sample and what to do."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.drawn_sources import Apart, Dark
from twinset.contracts.kinds.samples import Drop, Keep, Score
from twinset.shards.rows import BadVerdict
from twinset.shards.storage.store import Store

SCENES = [("a", 1, 20), ("a", 1, 30), ("b", 7, 80), ("b", 8, 90)]
Verdicts = Callable[[int], Any]  # by the place of the sample


def first_half_is_scored(place: int) -> Any:
    return Keep() if place % 2 else Score("grey", 1.0)


PAIRS: dict[str, tuple[Verdicts, str]] = {
    "half": (first_half_is_scored, "scored as None, and eq-x-.* as 'grey'; score all that is kept by one name"),
    "names": (lambda n: Score(f"grey{n}", 1.0), "scored as 'grey1', and eq-x-.* as 'grey0'"),
    "two": (lambda n: (Score("a", 1.0), Score("b", 1.0)), "a tuple, not a Keep, Drop or Score; return one"),
    "undeclared": (lambda n: Drop("dull", 1.0), r"reason 'dull' is not explained; add it to Apart\.reasons"),
    "no reason": (lambda n: Drop(""), "reason '' is not explained"),
    "flag": (lambda n: Score("grey", 1.0, "odd"), r"reason 'odd' is not explained; add it to Apart\.reasons"),
    "reason of a list": (lambda n: Drop(["r"]), r"reason \['r'\] is not explained"),  # type: ignore[arg-type]
    "empty name": (lambda n: Score("", 1.0), "a score of name ''; name it by a printable text"),
    "half a letter": (lambda n: Score("\ud800", 1.0), r"a score of name '\\ud800'"),
    "float32": (
        lambda n: Score("grey", np.float32(1)),
        r"a score of np.float32\(1.0\); give a finite Python",
    ),
    "nan": (lambda n: Score("grey", math.nan), "a score of nan; give"),
}


@pytest.mark.parametrize("case", PAIRS)
def test_a_verdict_on_a_pair_is_checked(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    says, problem = PAIRS[case]
    monkeypatch.setattr(Apart, "judge", lambda self, pairs: [says(n) for n in range(len(pairs))])
    store = Store(str(tmp_path / "out"))
    with pytest.raises(BadVerdict, match=rf"^filter 'test-apart' of twinset-tests 1\.0: eq-x-[a-z0-9]+: {problem}"):
        planned_build(store, "eq-x", SCENES, shard_size=6, filters=["test-apart"]).make(0)
    assert store.names("eq-x/_meta/receipts") == []


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "another candidate": lambda first, last: last,
    "nothing": lambda first, last: None,
    "an invented caption": lambda first, last: replace(first, captions0=("", *first.captions0)),
    "no caption": lambda first, last: replace(first, captions1=()),
    "a text": lambda first, last: replace(first, captions1=first.captions1[0]),
    "another group": lambda first, last: replace(first, group="z"),
    "an undeclared reason": lambda first, last: Drop("dull"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_filter_of_captions_gives_the_candidate_or_a_drop(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=6, filters=["test-dark"])
    first, last = build.candidates(0)[0], build.candidates(0)[-1]
    monkeypatch.setattr(Dark, "judges", "captions")
    monkeypatch.setattr(Dark, "judge", lambda self, candidate: WRONG[wrong](first, last))
    said = "reason 'dull' is not explained" if "reason" in wrong else "answered by .*; return this candidate, at most"
    with pytest.raises(BadVerdict, match=f"{first.key}: {said}"):
        build.make(0)
