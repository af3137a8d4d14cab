"""Shards on the workers of a Dask cluster, which are given the place of a shard and read all else from OUT."""

import logging
import os
import platform
import re
from concurrent.futures import Executor
from importlib.metadata import version

from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse, in_words
from twinset.contracts.receipt import Receipt
from twinset.models.device import check_installed
from twinset.stages.child_processes import ChildDied, close_children, run_in_child
from twinset.stages.job import StageWorker, forget_workers
from twinset.stages.make import make_and_retry

ADDRESS = "DASK_SCHEDULER_ADDRESS"
CONNECT_SECONDS = 10


class DaskCluster:
    """Workers of a Dask cluster: processes, whose threads make a shard each. cores: their threads."""

    def __init__(self) -> None:
        """Join it; raises `WrongUse` or `BuildFailed` where it is absent, or its workers have another twinset."""
        check_installed("runner dask", ["distributed"], "cluster")
        import distributed

        for library in ("distributed", "distributed.client", "tornado.application"):  # of a lost scheduler
            logging.getLogger(library).setLevel(logging.CRITICAL)
        self._address = os.environ.get(ADDRESS, "")
        if not re.fullmatch(r"\w+://.+:\d+/?", self._address):
            raise WrongUse(f"{ADDRESS}={self._address}: write the address of a scheduler, such as tcp://HOST:8786")
        try:
            self._client = distributed.Client(self._address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BuildFailed(
                f"no Dask scheduler answers at {self._address} ({reason}); start it, or correct {ADDRESS}"
            ) from error
        own, advice = version("twinset"), "install the same version for the Python of the workers"
        try:
            versions = self._client.run(begin_there)
            if foreign := sorted({*versions.values()} - {own}):
                raise BuildFailed(f"Dask workers have twinset {', '.join(foreign)}, and the build has {own}; {advice}")
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            self.cores = sum(worker["nthreads"] for worker in workers) or 1
            self._has_gpus = any("GPU" in worker["resources"] for worker in workers)
        except BaseException as error:
            self.close()
            if isinstance(error, ImportError | AttributeError):
                raise BuildFailed(f"a Dask worker cannot import twinset {own} ({error}); {advice}") from error
            raise

    def executor(self, worker: StageWorker) -> Executor:
        """Its workers; those of a stage of the pool ``gpu`` take one a shard, where workers have the resource GPU."""
        needs = {"GPU": 1} if worker.subset.pool == "gpu" and self._has_gpus else None
        executor: Executor = self._client.get_executor(pure=False, resources=needs)
        return executor

    @property
    def lost(self) -> bool:
        """Whether its scheduler has ended, or cannot be reached any more."""
        return bool(self._client.status != "running")

    def close(self) -> None:
        """Leave the cluster; what runs is given up."""
        if not self.lost:
            self._client.run(begin_there, on_error="ignore")  # else the children of workers stay
        self._client.close()


# What follows runs on workers.
def make_there(root: str, home: str, number: int, isolated: bool) -> Receipt:
    """Make one shard on a worker, in a child where it needs one; errors name the host."""
    try:
        return (run_in_child if isolated else make_and_retry)(root, home, number)
    except ChildDied:
        raise
    except (TwinsetError, OSError) as error:
        raise BuildFailed(f"worker on {platform.node()}: {in_words(error)}") from None


def begin_there() -> str:
    """Have a worker forget what it remembers of media, and end its idle children; returns its version of twinset."""
    forget_workers()
    close_children()
    return version("twinset")
