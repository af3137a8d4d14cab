"""Resuming the flow run that waits for people's decisions; Prefect is imported only where a run waits."""

import os
import time
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.flows.working_folder import refuse_settings_of_the_folder
from twinset.shards.storage.store import Store

WAITING = "_review/waiting.json"  # below OUT
POLL_SECONDS = 0.5
POLLS = 120  # a run that is about to be suspended is waited for


class WaitingRun(BaseModel):
    """The flow run that waits, and the stages that it waits for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flow_run_id: UUID
    stages: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """As it is written below OUT."""
        return canonical_json(self.model_dump(mode="json")) + b"\n"


def waiting_run(store: Store) -> WaitingRun | None:
    """The flow run that waits for decisions below OUT, if any; raises `WrongUse` when its record cannot be read."""
    try:
        return WaitingRun.model_validate_json(store.read(WAITING))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        place = f"{store.root}/{WAITING}"
        raise WrongUse(f"{place}: does not name a flow run; remove it, and resume the run in Prefect") from error


def resume_waiting(out: str, stage: str = "") -> bool:
    """Let the flow run that waits for decisions below OUT go on; returns whether one did.

    Args:
        out: folder or URL of the dataset.
        stage: that has its decisions now; a run that does not wait for it is left alone. Empty: any.

    Raises:
        WrongUse: no server is named (``PREFECT_API_URL``), the record of the run cannot be read, or as
            `refuse_settings_of_the_folder`.
        BuildFailed: the run ended meanwhile, or is not suspended.
    """
    store = Store(out)
    waiting = waiting_run(store)
    if waiting is None or (stage and stage not in waiting.stages):
        return False
    if not os.environ.get("PREFECT_API_URL"):
        raise WrongUse(
            f"flow run {waiting.flow_run_id} waits for these decisions; set PREFECT_API_URL to its server's, or resume "
            "it in Prefect"
        )
    refuse_settings_of_the_folder()
    from prefect.client.orchestration import get_client
    from prefect.exceptions import FlowPauseTimeout, ObjectNotFound
    from prefect.flow_runs import resume_flow_run

    run, again = f"flow run {waiting.flow_run_id}", "; start its deployment again, which resumes the build"
    with get_client(sync_client=True) as client:
        for _ in range(POLLS):
            try:
                state = client.read_flow_run(waiting.flow_run_id).state
            except ObjectNotFound as error:
                raise BuildFailed(f"{run} was deleted{again}") from error
            if state is None or state.is_final():
                name = "not there" if state is None else state.name
                raise BuildFailed(f"{run}, which waited, is {name}{again}")
            if state.is_paused():
                try:
                    resume_flow_run(waiting.flow_run_id)
                except FlowPauseTimeout as error:
                    raise BuildFailed(f"{run} waited for too long, and ended{again}") from error
                return True
            if waiting_run(store) != waiting:
                return False  # it goes on already
            time.sleep(POLL_SECONDS)
    raise BuildFailed(f"{run} is not suspended; look at it in Prefect, and resume it there")
