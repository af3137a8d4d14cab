"""The device that runs a network: the settings that name it, whether there is a GPU, and whether memory ran out."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.parts import OutOfMemory
from twinset.contracts.source import PlacedSettings

T = TypeVar("T")

# Read when MKL multiplies first. Else it rounds a row of a batch by its place in it and by the threads at work, on
# processors without AVX-512 at least; kernels stay as fast.
os.environ["MKL_CBWR"] = "AUTO,STRICT"

GPU = "cuda:0"
#: Plain RuntimeErrors of torch: cuBLAS's and cuDNN's, the CUDA driver's, the CPU allocator's two, oneDNN's.
RAN_OUT = (
    *("ALLOC_FAILED", "ALLOCATION_FAILED", "out of memory", "can't allocate memory", "not enough memory"),
    "could not create a primitive",
)


class OnDevice(PlacedSettings):
    """A base of sources and engines with a network of their own; it stands before the others.

    device: ``gpu`` is the first CUDA device, and one shard is made at a time unless --workers says otherwise. threads:
    torch's, of each process. extra: the optional dependencies that the network needs.
    """

    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=1, le=1024)

    execution: ClassVar[tuple[str, ...]] = ("device", "threads")
    extra: ClassVar[str] = "models"

    def device_name(self, setting: str) -> str:
        """``cpu``, or the GPU's model name; raises `WrongUse`, naming the key path, where there is no GPU."""
        return "cpu" if self.device == "cpu" else gpu_name(setting)

    def check_device(self, key: str) -> None:
        """As `contracts.source.PlacedSettings.check_device`; ``key`` is that of these settings."""
        if self.device == "gpu":
            check_installed(f"{key}.device", ("torch",), self.extra)
            check_gpu(f"{key}.device")


def check_installed(key: str, libraries: Iterable[str], extra: str) -> None:
    """Raise `WrongUse`, naming the setting and the optional dependencies, where a library is not installed."""
    for library in libraries:
        if find_spec(library) is None:
            raise WrongUse(f"{key}: {library} is not installed; it is needed here: pip install 'twinset[{extra}]'")


def check_opencv(key: str) -> None:
    """Raise `WrongUse`, naming the setting and the remedy, where OpenCV cannot be imported.

    Its usual package needs X libraries, which servers lack; the headless one of the same version makes the same bytes.
    """
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        raise WrongUse(
            f"{key}: OpenCV cannot be imported ({error}); pip install opencv-python, and apt-get install libgl1 "
            "libglib2.0-0 as root; or, without X, pip install opencv-python-headless in its place"
        ) from error


def check_gpu(setting: str = "source.device") -> None:
    """Raise `WrongUse`, naming the setting that asks for a GPU, where torch finds none; takes no memory of one."""
    import torch

    if not torch.cuda.is_available():
        raise WrongUse(
            f"{setting} is gpu, but torch finds no CUDA device here; set it to cpu, or run this where `nvidia-smi` "
            "lists a GPU (in a container: --gpus all)"
        )


def gpu_name(setting: str = "source.device") -> str:
    """Model name of the GPU; raises `WrongUse` where torch finds none."""
    import torch

    check_gpu(setting)
    return str(torch.cuda.get_device_name(GPU))


def round_alike(threads: int) -> None:
    """From now on in this process: a number of threads, and the same kernels in every run instead of the fastest."""
    import torch

    torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


@contextmanager
def inference(threads: int) -> Iterator[None]:
    """As `round_alike` while it is entered, since a process may have other networks; no gradients.

    Convolutions do without cuDNN: language models have none, and those that see images one, of their patches.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=False, benchmark=False, deterministic=True):
            yield
    finally:
        torch.set_num_threads(before)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out: torch's or Python's own, or one that only its text tells."""
    import torch

    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in RAN_OUT)


def within_memory(work: Callable[[], T]) -> T:
    """What ``work`` returns; raises `OutOfMemory` when it needs more memory than there is, on the GPU or the CPU."""
    try:
        return work()
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error):
            raise
        problem = str(error)
    # Not within the except: the error holds all tensors of the work.
    import torch

    torch.cuda.empty_cache()
    raise OutOfMemory(problem)


def load_within_memory(what: str, load: Callable[[], T]) -> T:
    """What ``load`` returns; raises `BuildFailed`, naming ``what``, when memory runs out, whatever the batch."""
    try:
        return within_memory(load)
    except OutOfMemory as error:
        raise BuildFailed(
            f"memory runs out while {what} is loaded ({error}), before anything is made; make fewer shards at a time "
            "(--workers 1), set a smaller precision, or use a machine with more memory"
        ) from error
