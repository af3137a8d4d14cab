"""Running out of memory is one error, however torch says it; any other error stays what it is."""

from typing import Any

import numpy as np
import pytest
import torch

from twinset.contracts.parts import OutOfMemory
from twinset.models.device import within_memory


def raising(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:75] data. DefaultCPUAllocator: not enough memory: you tried"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("could not create a primitive"),  # oneDNN's, seen below ulimit -d
    ],
)
def test_what_libraries_say_when_memory_runs_out(error: Exception) -> None:
    with pytest.raises(OutOfMemory) as caught:
        within_memory(lambda: raising(error))
    assert str(caught.value) == str(error)
    # Else what filled the memory stays as long as the error does.
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_what_the_cpu_says_when_memory_runs_out() -> None:
    with pytest.raises(OutOfMemory, match="DefaultCPUAllocator: can't allocate memory"):
        within_memory(lambda: torch.empty(1 << 50))
    with pytest.raises(OutOfMemory, match="Unable to allocate"):
        within_memory(lambda: np.empty(1 << 58))


def test_other_errors_stay() -> None:
    with pytest.raises(RuntimeError, match="must match the size") as caught:
        within_memory(lambda: torch.ones(2) + torch.ones(3))
    assert caught.type is RuntimeError
    assert within_memory(lambda: 3) == 3
