"""A deployed build that waits for people: its run is suspended, and takes no worker until somebody resumes it."""

from __future__ import annotations

from uuid import UUID, uuid4

from prefect import get_run_logger, suspend_flow_run
from prefect.runtime import deployment, flow_run

from twinset.flows.resume import WAITING, WaitingRun, waiting_run
from twinset.manifests.errors import DecisionsMissing
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

DAY = 86_400  # seconds


def no_longer_waiting(store: Store) -> None:
    """Remove the record that this very run waits, where there is one: it begins or goes on."""
    waiting, here = waiting_run(store), flow_run.get_id()
    if waiting is not None and str(waiting.flow_run_id) == here:
        store.remove(WAITING)


def suspend_until_decided(job: Job, missing: DecisionsMissing, days: float) -> None:
    """Suspend this flow run until somebody resumes it (`flows.resume`); it then begins again.

    Returns at once where people have decided meanwhile.

    Args:
        job: of the build, whose snapshot of the answers is older than this moment.
        missing: the stages that wait.
        days: after which the run fails unless it was resumed.

    Raises:
        DecisionsMissing: there is no deployment that would start this run again.
    """
    here = flow_run.get_id()
    if here is None or deployment.get_id() is None:
        raise missing
    waiting = WaitingRun(flow_run_id=UUID(here), stages=tuple(missing.missing))
    job.store.write(WAITING, waiting.to_bytes())
    # Whoever answers from now on finds the record; an answer of just before is seen here.
    now = Job(job.recipe, job.store)
    if any(now.worker(name).generator.waiting() is None for name in missing.missing):
        no_longer_waiting(job.store)
        return
    get_run_logger().warning("%s", missing)
    # A key of its own: the run may be suspended again, for another stage.
    suspend_flow_run(timeout=round(days * DAY), key=str(uuid4()))
