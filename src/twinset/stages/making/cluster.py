"""Shards on the workers of a Ray or Dask cluster: one that exists, or a local one that ends with the build.

Workers are given the place of a shard and read all else from OUT. What they answer are plain dictionaries, so that
neither classes nor errors of another version cross the wire.
"""

import logging
import os
import platform
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from importlib.metadata import version
from typing import Any, Literal, Protocol
from uuid import uuid4

from twinset.contracts.errors import BuildFailed, WrongUse, in_words
from twinset.models.device import check_installed
from twinset.stages.child_processes import close_children, run_in_child
from twinset.stages.job import forget_workers
from twinset.stages.making.make import make_shard

logger = logging.getLogger("twinset")

Kind = Literal["ray", "dask"]
ADDRESSES: dict[Kind, str] = {"ray": "RAY_ADDRESS", "dask": "DASK_SCHEDULER_ADDRESS"}
LIBRARIES: dict[Kind, str] = {"ray": "ray", "dask": "distributed"}
CONNECT_SECONDS = 10
CLOSED_CHECK_SECONDS = 0.5
WORKERS_CHECK_SECONDS = 10.0
MAY_HAVE_CHILDREN = {"distributed.worker.daemon": False}  # for shards that must not share a process
LEAST_OBJECTS = 100 << 20  # bytes of Ray's store of objects, of which hardly any are made


def address_of(kind: Kind) -> str | None:
    """The address of the cluster to join, or None to start a local one."""
    return os.environ.get(ADDRESSES[kind]) or None


def local_ray(workers: int) -> dict[str, Any]:
    """What `ray.init` takes for a local cluster; 0 workers: one a core."""
    local = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False, "log_to_driver": False}
    return {**local, "object_store_memory": LEAST_OBJECTS}


def local_dask(workers: int) -> dict[str, Any]:
    """What `distributed.LocalCluster` takes; 0 workers: one a core."""
    local = {"n_workers": workers or os.cpu_count(), "threads_per_worker": 1, "processes": True}
    return {**local, "dashboard_address": None, "memory_limit": 0, "silence_logs": logging.CRITICAL}


class Cluster(Protocol):
    """Makes shards. cores: shards at a time; gpus: those that it counts, each for one shard."""

    cores: int
    gpus: int

    def run(self, root: str, home: str, number: int, isolated: bool, gpu: bool) -> dict[str, Any]:
        """Make one shard; returns its receipt.

        Raises:
            BuildFailed: it cannot be made, or the cluster is gone.
            OSError: a worker died, or the network or a disk had trouble.
        """

    def close(self) -> None:
        """Leave the cluster, or end the local one; what runs is given up."""


def check_cluster(kind: Kind) -> None:
    """Fail before any work where the library is absent or nothing answers at the address.

    Raises `WrongUse` for the former, `BuildFailed` for the latter.
    """
    check_installed(f"runner {kind}", [LIBRARIES[kind]], "cluster")
    address = address_of(kind)
    place = re.fullmatch(r"(?:\w+://)?([^/:]+|\[[^]/]+\]):(\d+)/?", address or "")
    if kind == "dask" and address and (place is None or re.match(r"(?!tcp:|tls:|ucx:|wss?:)\w+://", address)):
        raise WrongUse(f"{ADDRESSES[kind]}={address}: not the address of a scheduler; write tcp://HOST:PORT")
    if place is None:
        return  # local, or such as ``auto``
    try:
        socket.create_connection((place[1].strip("[]"), int(place[2])), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _absent(kind, address, error) from error


def open_cluster(kind: Kind, workers: int) -> Cluster:
    """Join the cluster at its address or start a local one of some workers; raises `BuildFailed` where it is absent."""
    return RayCluster(workers) if kind == "ray" else DaskCluster(workers)


def _shipped(name: str) -> Callable[..., dict[str, Any]]:
    """A function of `stages.making.cluster`, pickled by value: a worker without twinset can say so."""
    here = version("twinset")

    def shipped(*arguments: Any) -> dict[str, Any]:
        import importlib
        import importlib.metadata
        import platform

        host, advice = platform.node(), "install the same version of it for the Python of the workers"
        try:
            there = importlib.metadata.version("twinset")
            module = importlib.import_module("twinset.stages.making.cluster")
        except ImportError as error:
            return {"host": host, "error": f"twinset cannot be imported ({error}); {advice}"}
        if there != here:
            return {"host": host, "error": f"twinset {there} is installed, and {here} where the build runs; {advice}"}
        return {"host": host, **(getattr(module, name)(*arguments) or {})}

    return shipped


def _receipt(answer: dict[str, Any]) -> dict[str, Any]:
    """The receipt in a worker's answer; raises what went wrong, with the host's name where it is another one."""
    if "error" not in answer:
        receipt: dict[str, Any] = answer["receipt"]
        return receipt
    host = f"worker on {answer['host']}: " if answer["host"] != platform.node() else ""
    if "errno" in answer:
        raise OSError(answer["errno"], f"{host}{answer['error']}")
    raise BuildFailed(f"{host}{answer['error']}")


def _absent(kind: Kind, address: str | None, error: Exception) -> BuildFailed:
    said = " ".join(str(error).split()) or type(error).__name__
    if address is None:
        return BuildFailed(f"a local {kind.title()} cluster does not start ({said}); use --runner processes")
    token = ", set RAY_AUTH_MODE=token where it asks for one" if kind == "ray" else ""
    return BuildFailed(
        f"no {kind.title()} cluster answers at {address} ({said}); start it{token}, correct {ADDRESSES[kind]}, or "
        "unset it to start a local one"
    )


def _within(seconds: float, make: Callable[[], Any]) -> Any:
    """What ``make`` returns or raises; raises `TimeoutError` where that takes longer: Dask waits without an end for a
    server that is no scheduler.
    """
    made = Future[Any]()

    def run() -> None:
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return made.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or "what listens there is no scheduler") from error


class RayCluster:
    """Workers of Ray: a process each, which makes a shard at a time."""

    def __init__(self, workers: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray, self._closed, address = ray, threading.Event(), address_of("ray")
        self._mine = not ray.is_initialized()  # else it is the caller's, as in a notebook
        if self._mine:
            given = {"log_to_driver": False} if address else local_ray(workers)
            try:
                ray.init(address=address or "local", logging_level=logging.CRITICAL, **given)
            except Exception as error:  # of many kinds, such as RuntimeError where versions differ
                raise _absent("ray", address, error) from error
        resources = ray.cluster_resources()
        self.cores, self.gpus = int(resources.get("CPU", 0)) or 1, int(resources.get("GPU", 0))
        self._make, self._build = ray.remote(max_retries=0)(_shipped("make_there")), uuid4().hex

    def run(self, root: str, home: str, number: int, isolated: bool, gpu: bool) -> dict[str, Any]:
        """As `Cluster.run`; GPUs are asked for where the cluster has any."""
        chosen = self._make.options(num_cpus=1, num_gpus=1 if gpu and self.gpus else 0)
        try:
            answer = chosen.remote(root, home, number, isolated, self._build)
            while not self._ray.wait([answer], timeout=CLOSED_CHECK_SECONDS)[0]:
                if self._closed.is_set():
                    self._ray.cancel(answer, force=True)
                    raise BuildFailed("the build was ended before it was made; run the same command again")
            return _receipt(self._ray.get(answer))
        except self._ray.exceptions.RayError as error:
            said = str(error).strip().partition("\n")[0]
            raise ConnectionError(f"Ray lost the worker that made it ({type(error).__name__}: {said})") from error

    def close(self) -> None:
        """As `Cluster.close`."""
        self._closed.set()
        if self._mine:
            self._ray.shutdown()


class DaskCluster:
    """Workers of Dask: processes, whose threads make a shard each."""

    def __init__(self, workers: int) -> None:
        import dask
        import distributed

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._closed, self._address, self._local = threading.Event(), address_of("dask"), None
        self._make, self._isolated = _shipped("make_there"), False
        try:
            if self._address is None:
                with dask.config.set(MAY_HAVE_CHILDREN):
                    self._local = distributed.LocalCluster(**local_dask(workers))
            place = self._address or self._local
            self._client = _within(
                2 * CONNECT_SECONDS,
                lambda: distributed.Client(place, timeout=CONNECT_SECONDS, set_as_default=False),
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise _absent("dask", self._address, error) from error
        try:
            self._refuse_other_workers()
        except BaseException:
            self.close()
            raise
        there = self._workers()
        self.cores = sum(one["nthreads"] for one in there) or 1
        self.gpus = int(sum(one["resources"].get("GPU", 0) for one in there))
        self._looking, self._looked, self._empty = threading.Lock(), time.monotonic(), False

    def _workers(self) -> list[dict[str, Any]]:
        return [*self._client.scheduler_info(n_workers=-1)["workers"].values()]

    def _refuse_other_workers(self) -> None:
        """Raise `BuildFailed` for workers of another Python or without this twinset, and have the others begin."""
        own = ".".join(platform.python_version_tuple()[:2])
        for place, found in self._client.get_versions()["workers"].items():
            if (python := ".".join(found["host"]["python"].split(".")[:2])) != own:
                raise BuildFailed(
                    f"the Dask worker {place} has Python {python}, and the build has {own}; start both in equal "
                    "environments"
                )
        for place, answer in self._client.run(_shipped("begin_there")).items():
            if "error" in answer:
                raise BuildFailed(f"the Dask worker {place} on {answer['host']}: {answer['error']}")

    def run(self, root: str, home: str, number: int, isolated: bool, gpu: bool) -> dict[str, Any]:
        """As `Cluster.run`; a resource ``GPU`` is asked for where workers have one."""
        import distributed

        self._isolated |= isolated
        needs, done = {"GPU": 1} if gpu and self.gpus else None, threading.Event()
        try:
            future = self._client.submit(self._make, root, home, number, isolated, pure=False, resources=needs)
            future.add_done_callback(lambda _: done.set())
            while not done.wait(CLOSED_CHECK_SECONDS):
                if self._closed.is_set():
                    raise BuildFailed("the build was ended before it was made; run the same command again")
                if self._client.status != "running":
                    break
                self._look()
            return _receipt(future.result(CONNECT_SECONDS))
        except distributed.KilledWorker as error:
            raise BuildFailed(
                f"each of the {error.allowed_failures + 1} Dask workers that made it died, the last at "
                f"{error.last_worker.address}; look into their logs, and run the same command again"
            ) from error
        except (CancelledError, RuntimeError, TimeoutError) as error:
            if isinstance(error, TimeoutError) and self._client.status == "running":
                raise
            raise BuildFailed(
                f"the Dask scheduler at {self._address} ended or cannot be reached any more; start it again, and run "
                "the same command again"
            ) from error

    def _look(self) -> None:
        """Warn where no worker is left: the build waits until one comes."""
        with self._looking:
            if time.monotonic() - self._looked < WORKERS_CHECK_SECONDS:
                return
            before, self._empty, self._looked = self._empty, not self._workers(), time.monotonic()
        if self._empty and not before:
            logger.warning("no worker of the Dask cluster at %s is left; the build waits for one", self._address)

    def close(self) -> None:
        """As `Cluster.close`."""
        self._closed.set()
        if self._isolated and self._client.status == "running":
            self._client.run(_shipped("begin_there"), on_error="ignore")  # else their children stay
        self._client.close()
        if self._local is not None:
            self._local.close()


# What follows runs on workers, which are sent it by name (`_shipped`).
_builds = {"last": ""}  # that this worker made a shard of, where builds have names


def make_there(root: str, home: str, number: int, isolated: bool, build: str = "") -> dict[str, Any]:
    """Make one shard on a worker; returns its ``receipt``, or the ``error``, with the ``errno`` of a system's.

    build: a name of the build, where a worker that makes one shard at a time can outlive it; another one begins again.
    """
    try:
        if build != _builds["last"]:
            begin_there()
            _builds["last"] = build
        if isolated:
            return {"receipt": run_in_child(root, home, number)}
        return {"receipt": make_shard(root, home, number).model_dump(mode="json")}
    except OSError as error:
        return {"error": in_words(error), "errno": error.errno or 0}
    except (Exception, SystemExit) as error:
        return {"error": in_words(error)}


def begin_there() -> None:
    """Have a worker of an earlier build forget what it remembers of media, and end its idle children."""
    forget_workers()
    close_children()
