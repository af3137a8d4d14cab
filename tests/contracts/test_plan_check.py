"""A plan is refused when a key is planned twice or a group is interrupted, however far apart."""

from collections.abc import Iterator, Sequence

import pytest

from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import WrongUse
from twinset.stages.plan import PlanCheck


def check(candidates: Sequence[tuple[str, str]], split: str = "test") -> list[Candidate]:
    def planned() -> Iterator[Candidate]:
        return iter([Candidate(key=key, group=group, split=split) for key, group in candidates])

    watching = PlanCheck()
    found = list(watching.watch(planned()))
    watching.finish("ann.json", planned)
    return found


def test_candidates_pass_as_they_are() -> None:
    candidates = [("k0", "a"), ("k1", "a"), ("k2", "b"), ("k3", "k3")]
    assert [(one.key, one.group) for one in check(candidates)] == candidates
    assert check([]) == []


def test_a_repeated_key_is_named_with_both_groups() -> None:
    far = [("k", "a"), *((f"k{n}", f"g{n}") for n in range(5000)), ("k", "b")]
    with pytest.raises(WrongUse, match=r"ann\.json: k is planned twice, in group a and in group b; correct the annot"):
        check(far)
    with pytest.raises(WrongUse, match="k is planned twice, in group a and in group a"):
        check([("k", "a"), ("k", "a")])


def test_an_interrupted_group_is_named() -> None:
    far = [("k", "a"), *((f"k{n}", f"g{n}") for n in range(5000)), ("l", "a")]
    with pytest.raises(WrongUse, match=r"ann\.json: the candidates of group a do not follow each other \(l "):
        check(far)


def test_one_group_in_two_splits_is_two_groups() -> None:
    watching = PlanCheck()
    planned = [Candidate(key=f"k{n}", group="a", split=split) for n, split in enumerate(("train", "val"))]
    assert list(watching.watch(iter(planned))) == planned
    watching.finish("ann.json", lambda: iter(planned))


def test_equal_hashes_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.contracts.plan._hash", lambda text: 7)
    assert len(check([("k0", "a"), ("k1", "b"), ("k2", "c")])) == 3
    with pytest.raises(WrongUse, match="k0 is planned twice"):
        check([("k0", "a"), ("k1", "b"), ("k0", "c")])
