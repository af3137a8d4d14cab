"""Built-in data is made by several processes."""

import os
from functools import partial

import pytest

from twinset.contracts.errors import BuildFailed
from twinset_demo.in_processes import in_processes


def _with_process(text: str) -> tuple[str, int]:
    return text.upper(), os.getpid()


def _end(code: int, _text: str) -> None:
    os._exit(code)


def test_results_come_in_order_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1})
    made = in_processes(_with_process, "abc")
    assert [text for text, _ in made] == ["A", "B", "C"]
    assert os.getpid() not in {process for _, process in made}


def test_one_core_makes_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0})
    assert in_processes(_with_process, "ab") == [("A", os.getpid()), ("B", os.getpid())]


def test_a_dead_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1})
    with pytest.raises(BuildFailed, match="a process that makes built-in data died"):
        in_processes(partial(_end, 3), "ab")
