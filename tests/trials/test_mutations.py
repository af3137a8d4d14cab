"""A few mutated inputs of each cheap kind end well or in an error of twinset; `tests.trials.mutations` runs more."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.trials.mutated_kinds import KINDS
from tests.trials.mutation_workers import ENDED, FINDING, REFUSED, Case, acted
from tests.trials.mutations import kind_of, run
from tests.trials.mutators import mutate

CHEAP = ("GEBC", "YouCook2", "pairs, json", "scores", "answers", "benchmark sugarcrepe", "features")


def test_a_few_cases_end_well_or_are_refused() -> None:
    numbers = [number for number in range(400) if kind_of(number) in CHEAP][:20]
    cases = run(numbers, seed=0, processes=1)
    assert [case for case in cases if case.outcome == FINDING] == []
    assert sorted(case.number for case in cases) == numbers
    assert {case.outcome for case in cases} == {ENDED, REFUSED}


def test_every_kind_has_its_turn() -> None:
    turns = sum(kind.weight for kind in KINDS.values())
    kinds = [kind_of(number) for number in range(turns)]
    assert {name: kinds.count(name) for name in KINDS} == {name: kind.weight for name, kind in KINDS.items()}


def test_a_case_is_the_same_every_time(tmp_path: Path) -> None:
    def changed(folder: Path) -> list[tuple[str, bytes]]:
        folder.mkdir()
        changes = []
        for number in range(20):
            path = folder / f"{number}.json"
            path.write_text('{"a": [1, {"b": "c"}], "d": 2.5}')
            change = mutate(folder, [path], Random(f"7/{number}/x"))
            changes.append((change, path.read_bytes() if path.is_file() else b""))
        return changes

    assert changed(tmp_path / "first") == changed(tmp_path / "second")


def test_what_nobody_foresaw_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        raise KeyError("a name")

    monkeypatch.setitem(KINDS, "GEBC", replace(KINDS["GEBC"], acts={"plan": act}))
    case = acted(Case(0, "GEBC", act="plan"), tmp_path)
    assert case.outcome == FINDING and case.detail.startswith("KeyError: 'a name' (")
