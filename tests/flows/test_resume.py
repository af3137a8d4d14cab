"""Resuming a flow run that waits for people, as far as no server is needed."""

from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.flows.resume import WAITING, WaitingRun, resume_waiting
from twinset.shards.storage.store import Store

RUN = WaitingRun.model_validate({"flow_run_id": "6b0f2a0e-7f6f-4c9c-9a53-0f9f3f1f8f11", "stages": ["asked"]})


def test_nothing_is_resumed_where_no_run_waits_or_it_waits_for_others(tmp_path: Path) -> None:
    assert not resume_waiting(str(tmp_path))
    Store(str(tmp_path)).write(WAITING, RUN.to_bytes())
    assert not resume_waiting(str(tmp_path), "another")


def test_a_run_needs_a_server_and_its_record_must_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    store = Store(str(tmp_path))
    store.write(WAITING, RUN.to_bytes())
    with pytest.raises(WrongUse, match=f"flow run {RUN.flow_run_id} waits for these decisions; set PREFECT_API_URL"):
        resume_waiting(str(tmp_path), "asked")
    store.write(WAITING, b'{"flow_run_id": "x"}')
    with pytest.raises(WrongUse, match=r"waiting.json: does not name a flow run; remove it"):
        resume_waiting(str(tmp_path), "asked")
