"""Features of all processes, through which gradients flow back to the process that computed them."""

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from twinset.training.losses.features import Features


def gather(features: Features) -> Features:
    """Features of all processes in the order of their ranks, shapes (world · n, d); the same on each.

    Every process then computes the same loss of the whole batch. Backward sums, over processes, the gradients of each
    process's own features: `torch.nn.parallel.DistributedDataParallel`, which averages gradients of parameters over
    processes, then gives those of one process on the whole batch. Every process needs the same n. Without a process
    group, or with one process, the features are returned as they are.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return features
    return features.map(_AllGather.apply)


class _AllGather(torch.autograd.Function):
    """Concatenation over ranks."""

    @staticmethod
    def forward(context: Any, part: Tensor) -> Tensor:
        context.rows = len(part)
        parts = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        summed = gradient.contiguous().clone()
        dist.all_reduce(summed)
        return summed.narrow(0, dist.get_rank() * context.rows, context.rows)
