"""A source that breaks the contract is told so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.contract import check_source
from twinset.generators.image_pairs import NamedPairCandidate, NamedPairSource
from twinset.shards.contracts import Context, Source


class Rows(Source):
    """A source that breaks the contract as it is told."""

    kind: Literal["rows"] = "rows"
    licence: str = "CC0-1.0"
    fault: str = ""
    reasons: ClassVar[dict[str, str]] = {"absent": "never there", "dirty": "not a row"}
    version = 1
    candidate = Candidate
    runs: ClassVar[list[int]] = []

    def inputs(self) -> str:
        return "the same"

    def plan(self) -> Iterator[Candidate]:
        self.runs.append(1)
        for number in range(10):
            if self.fault == "dirty":
                self.excluded["dirty"] += 1
            identity = (len(self.runs) if self.fault == "plans" else 0, number % 9 if self.fault == "keys" else number)
            yield Candidate(
                key=sample_key(self.stage.name, *identity),
                identity=identity_of(*identity),
                group=str(number % 5 if self.fault == "groups" else number // 2),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Rejected]:
        asked = list(candidates)[::-1] if self.fault == "order" else candidates
        for candidate in asked:
            reason = "odd" if self.fault == "reason" else "absent"
            yield Rejected(candidate.key, reason, media="x.jpg" if self.fault == "media" else None)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("plans", "two plans differ"),
        ("keys", "key 'rows-[a-z2-7]+' is that of two candidates"),
        ("groups", "candidates of group '0' do not follow each other"),
        ("dirty", "10 records are left out, 0 are named; use excluded.add"),
        ("order", "one result a candidate, in order"),
        ("reason", "reason 'odd' is not explained; add it to Rows.reasons"),
        ("media", "x.jpg has None bytes by its rejection, .* both must look in one place"),
    ],
)
def test_what_breaks_the_contract_is_said(fault: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_source(Rows(fault=fault), Context("rows"))


class Listed(NamedPairSource):
    """A pair a line of a file, which is wrong as it is told."""

    kind: Literal["listed"] = "listed"
    licence: str = "CC0-1.0"
    fault: str = ""
    reasons: ClassVar[dict[str, str]] = {"dirty": "not a pair"}
    version = 1

    def plan(self) -> Iterator[NamedPairCandidate]:
        for number, line in enumerate(self.annotations.read_text().splitlines()):
            name, _, captions = line.partition("\t")
            if not captions:
                if self.fault != "not counted":
                    self.excluded.add("dirty", f"list.tsv line {number + 1}")
                continue
            yield self.planned(
                identity=(number,) if self.fault == "position" else (name,),
                images=(f"{name}0", f"{name}1"),
                captions=(captions.split("|")[:1], captions.split("|")[1:]),
                provenance={},
            )


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("position", r"list.tsv without line 2: identity \[1\] is that of another record; .* never its position"),
        ("not counted", r"list.tsv without line 4: the plan is the same; count it with self.excluded.add"),
    ],
)
def test_what_is_wrong_with_listed_pairs_is_said(tmp_path: Path, fault: str, problem: str) -> None:
    lines = [*(f"{name}\ta {name}|two {name}s" for name in ("dog", "cat", "bird")), "dirty", "hen\ta hen|two hens"]
    (tmp_path / "list.tsv").write_text("\n".join(lines) + "\n")

    def check(fault: str) -> None:
        check_source(Listed(annotations=tmp_path / "list.tsv", media=tmp_path, fault=fault), Context("listed"), make=0)

    check("")
    with pytest.raises(AssertionError, match=problem):
        check(fault)
