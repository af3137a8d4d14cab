"""What a filter says is checked when it says it; the error names the filter, the sample and what to do."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.drawn_sources import Apart
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


WRONG = ("another candidate", "nothing", "an undeclared reason", "an invented one", "none", "a text", "another group")
