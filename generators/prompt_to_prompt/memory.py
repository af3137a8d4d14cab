"""Whether an error says that memory ran out, on the GPU or the CPU."""

from __future__ import annotations

import torch

# Of errors that torch raises as mere RuntimeErrors: cuBLAS's and cuDNN's, the CUDA driver's, the CPU allocator's two.
RAN_OUT = ("ALLOC_FAILED", "ALLOCATION_FAILED", "out of memory", "can't allocate memory", "not enough memory")


def ran_out(error: BaseException) -> bool:
    """Whether it is torch's or Python's error for memory that ran out, or one that only its text tells."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(saying in str(error) for saying in RAN_OUT)
