"""The processes that share a run, as torchrun starts them, and the device and threads of this one."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from twinset.contracts.canonical import digest
from twinset.contracts.stage import runtime_class
from twinset.models.device import check_gpu, round_alike
from twinset.models.encoders.contract import Running
from twinset.training.runs.settings import RunSettings

TIMEOUT = timedelta(hours=6)  # processes wait for the first one while it validates and writes checkpoints


@dataclass(frozen=True, slots=True)
class Process:
    """This process among the ``world`` of a run; the one of rank 0 validates and writes. device: torch's name. runtime:
    runtime class of the run.
    """

    rank: int
    world: int
    device: str
    runtime: str

    def wait(self) -> None:
        """Block until all processes of the run have called this."""
        if self.world > 1:
            torch.distributed.barrier()

    def average(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give each tensor its mean over all processes; a gradient by gathered features is that of the whole batch."""
        for tensor in tensors if self.world > 1 else ():
            torch.distributed.all_reduce(tensor)
            tensor /= self.world


def gathered(value: Any) -> list[Any]:
    """A value of every process of the run, by rank; all must call this."""
    if not torch.distributed.is_initialized():
        return [value]
    values = [value] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


@contextlib.contextmanager
def joined(settings: RunSettings) -> Iterator[Process]:
    """This process with its threads and device set; joined with the others where torchrun started several. Raises
    `WrongUse`: there is no GPU.
    """
    rank, local = (int(os.environ.get(name, "0")) for name in ("RANK", "LOCAL_RANK"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    threads = settings.threads or max(1, len(os.sched_getaffinity(0)) // world)
    device, backend = "cpu", "gloo"
    if settings.device == "gpu":
        check_gpu("device")
        torch.cuda.set_device(local)
        device, backend = f"cuda:{local}", "nccl"
    round_alike(threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name = Running(settings.device).device_name()
    runtime = runtime_class(name, threads, settings.batch // settings.accumulate // world)
    if world == 1:
        yield Process(0, 1, device, runtime)
        return
    torch.distributed.init_process_group(backend, rank=rank, world_size=world, timeout=TIMEOUT)
    try:
        yield Process(rank, world, device, digest([runtime, world]))
    finally:
        torch.distributed.destroy_process_group()
