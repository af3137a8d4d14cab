"""The GPU that draws: whether there is one, and whether its memory, or the machine's, ran out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from generators.prompt_to_prompt.memory import ran_out
from manifests.errors import WrongUse
from shards.contracts import OutOfMemory

T = TypeVar("T")

GPU = "cuda:0"


def check_gpu() -> None:
    """Raises `WrongUse` where torch finds no GPU; takes no memory of one."""
    if not torch.cuda.is_available():
        raise WrongUse(
            "source.device is gpu, but torch finds no CUDA device here; write `device: cpu`, or run this where "
            "`nvidia-smi` lists a GPU (in a container: --gpus all)"
        )


def gpu_name() -> str:
    """Model name of the GPU that draws; raises `WrongUse` where torch finds none."""
    check_gpu()
    return str(torch.cuda.get_device_name(GPU))


def within_memory(work: Callable[[], T]) -> T:
    """What ``work`` returns; raises `OutOfMemory` when it needs more memory than there is, on the GPU or the CPU."""
    try:
        return work()
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error):
            raise
        problem = str(error)
    # Not within the except: the error holds all tensors of the work.
    torch.cuda.empty_cache()
    raise OutOfMemory(problem)
