"""A source that breaks the contract is told so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.parts import BrokenContract
from twinset.generators.contract import check_source
from twinset.generators.named_pairs import NamedPairCandidate, NamedPairSource
from twinset.shards.contracts import Context, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Candidate):
    """A candidate with nothing of its own."""


class Rows(Source):
    """A source that breaks the contract as it is told."""

    kind: Literal["rows"] = "rows"
    licence: str = "CC0-1.0"
    fault: str = ""
    reasons: ClassVar[dict[str, str]] = {"absent": "never there", "dirty": "not a row"}

    def introduction(self) -> Any:
        return None if self.fault == "introduction" else ""

    def notes(self) -> str:
        return "What no count tells." if self.fault == "notes" else "* What no count tells.\n"

    version = 1
    candidate = Row
    runs: ClassVar[list[int]] = []

    def open(self, stage: Context) -> Rows:
        if self.fault == "open":
            raise KeyError("rows")
        opened: Rows = super().open(stage)
        return opened

    def inputs(self) -> str:
        if self.fault == "inputs fail":
            raise ValueError("not a row")
        return str(id(self)) if self.fault == "inputs" else "the same"

    def plan(self) -> Iterator[Row]:
        self.runs.append(1)
        for number in range(10):
            if self.fault == "dirty":
                self.excluded["dirty"] += 1
            if self.fault == "unknown dirty":
                self.excluded.add("odd", f"row {number}")
            identity = (len(self.runs) if self.fault == "plans" else 0, number % 9 if self.fault == "keys" else number)
            row = Row(
                key=sample_key(self.stage.name, *identity),
                identity=identity_of(*identity),
                group=str(number % 5 if self.fault == "groups" else number // 2),
            )
            yield replace(row, identity="") if self.fault == "identity" else row

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Rejected]:
        asked = list(candidates)[::-1] if self.fault == "order" else candidates
        for candidate in asked:
            reason = "odd" if self.fault == "reason" else "absent"
            yield Rejected(candidate.key, reason, media="x.jpg" if self.fault == "media" else None)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("open", r"rows: open\(\) raises KeyError: 'rows' .*; correct it, or raise WrongUse"),
        ("inputs fail", r"rows: inputs\(\) raises ValueError: not a row"),
        ("inputs", "inputs.. differs between two generators"),
        ("plans", "two plans differ"),
        ("keys", "key 'rows-[a-z2-7]+' is that of two candidates"),
        ("groups", "candidates of group '0' do not follow each other"),
        ("identity", "no identity; give identity_of"),
        ("dirty", "10 records are left out, 0 are named; use excluded.add"),
        ("unknown dirty", "reason 'odd' is not explained; add it to Rows.reasons"),
        ("order", "one result a candidate, in order"),
        ("reason", "reason 'odd' is not explained; add it to Rows.reasons"),
        ("media", "x.jpg is missing, but media_files.. is None"),
    ],
)
def test_what_breaks_the_contract_is_said(fault: str, problem: str) -> None:
    with pytest.raises(BrokenContract, match=problem):
        check_source(Rows(fault=fault), Context("rows"))


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("introduction", "Rows.introduction.. gives a NoneType; return text"),
        ("notes", "Rows.notes.*not a Markdown list"),
    ],
)
def test_words_that_a_card_cannot_print_are_said(fault: str, problem: str) -> None:
    with pytest.raises(BrokenContract, match=problem):
        check_source(Rows(fault=fault), Context("rows"))


class OtherSignature(Rows):
    """Forgets what `how_made` is called with."""

    def how_made(self) -> str:  # type: ignore[override]
        return ""


class NoMeaning(Rows):
    """Has a reason without a meaning."""

    reasons: ClassVar[dict[str, str]] = {"absent": " "}


def test_a_wrong_signature_and_a_reason_without_meaning_are_said() -> None:
    with pytest.raises(BrokenContract, match=r"its signature is def how_made.self, reports. -> str"):
        check_source(OtherSignature(), Context("rows"))
    with pytest.raises(BrokenContract, match=r"reason 'absent' of NoMeaning.reasons has no meaning"):
        check_source(NoMeaning(), Context("rows"))


class Named(NamedPairSource):
    """Two pairs, the second of which is wrong as it is told."""

    kind: Literal["named"] = "named"
    licence: str = "CC0-1.0"
    fault: str = ""

    version = 1

    def plan(self) -> Iterator[NamedPairCandidate]:
        yield self.planned(identity=("first",), images=("a", "b"), captions=(["one"], ["two"]), provenance={"at": 1})
        blank = ("three", " ") if self.fault == "planned blank" else ("three",)
        about = {"at": "1" if self.fault == "provenance" else 1}
        second = self.planned(identity=("second",), images=("c", "d"), captions=(blank, ["four"]), provenance=about)
        yield replace(second, captions1=("",)) if self.fault == "blank" else second


def test_blank_captions_and_changing_provenance_of_named_pairs_are_said(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("")

    def check(fault: str) -> None:
        source = Named(annotations=tmp_path / "list.txt", media=tmp_path, fault=fault)
        check_source(source, Context("named"))

    check("")
    with pytest.raises(BrokenContract, match="a caption 1 is absent or blank; leave the record out"):
        check("blank")
    with pytest.raises(BrokenContract, match=r"provenance {'at': 'str'}, that of named-.* is {'at': 'int'}"):
        check("provenance")
    with pytest.raises(WrongUse, match=r"list.txt: caption 0 of .'second'. is absent or blank; leave such records out"):
        check("planned blank")


def test_a_source_that_keeps_it_passes(tmp_path: Path) -> None:
    check_source(Rows(), Context("rows"))


class Listed(NamedPairSource):
    """A pair a line of a file, with the faults of a source that counts."""

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
            identity = (number,) if self.fault == "position" else (name,)
            words = captions.split("|")
            yield self.planned(identity=identity, images=(f"{name}0", f"{name}1"), captions=(words[:1], words[1:]))


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("position", r"list.tsv without line 2: identity \[1\] is that of another record; .* never its position"),
        ("not counted", r"list.tsv: without line 4 the plan is the same; count it with self.excluded.add"),
    ],
)
def test_positions_and_records_that_nobody_counts_are_said(tmp_path: Path, fault: str, problem: str) -> None:
    lines = [*(f"{name}\ta {name}|two {name}s" for name in ("dog", "cat", "bird")), "dirty", "hen\ta hen|two hens"]
    (tmp_path / "list.tsv").write_text("\n".join(lines) + "\n")

    def check(fault: str) -> None:
        check_source(Listed(annotations=tmp_path / "list.tsv", media=tmp_path, fault=fault), Context("listed"), make=0)

    check("")
    with pytest.raises(BrokenContract, match=problem):
        check(fault)
