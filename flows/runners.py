"""The task runners that shards can run on, all on this machine or its cluster; bytes are the same on each."""

import logging
import os
from typing import Any, Literal

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

Runner = Literal["threads", "processes", "ray", "dask"]


def task_runner(runner: Runner, workers: int) -> TaskRunner[Any]:
    """A Prefect task runner of ``workers`` shards at a time; 0 means one a core.

    ``ray`` and ``dask`` start their own local cluster, or join the one that ``RAY_ADDRESS`` or
    ``DASK_SCHEDULER_ADDRESS`` names.
    """
    workers = workers or os.cpu_count() or 1
    if runner == "threads":
        return ThreadPoolTaskRunner(max_workers=workers)
    if runner == "processes":
        return ProcessPoolTaskRunner(max_workers=workers)
    chosen: TaskRunner[Any]
    local: dict[str, Any]
    if runner == "ray":
        from prefect_ray.task_runners import RayTaskRunner

        address = os.environ.get("RAY_ADDRESS") or None
        local = {"num_cpus": workers, "include_dashboard": False, "log_to_driver": False}
        chosen = RayTaskRunner(address=address, init_kwargs=None if address else local)
    else:
        from prefect_dask.task_runners import DaskTaskRunner

        logging.getLogger("distributed").setLevel(logging.WARNING)  # Prefect shows the root's log lines
        address = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
        local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        chosen = DaskTaskRunner(address=address, cluster_kwargs=None if address else local)
    return chosen
