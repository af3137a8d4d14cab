"""Settings of what a neural network makes: the device that it runs on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import ClassVar, Literal

from pydantic import Field

from twinset.manifests.errors import WrongUse
from twinset.manifests.source import PlacedSettings, Pool


class OnDevice(PlacedSettings):
    """A base of sources and engines with a network of their own; it stands before the others.

    device: ``gpu`` is the first CUDA device, and one shard is made at a time unless --workers says otherwise. threads:
    torch's, of each process.

    extra: the optional dependencies that the network needs.
    """

    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=1, le=1024)

    execution: ClassVar[tuple[str, ...]] = ("device", "threads")
    extra: ClassVar[str] = "models"

    @property
    def pool(self) -> Pool:
        """As `manifests.source.SourceSettings.pool`."""
        return "gpu" if self.device == "gpu" else "cpu"

    @property
    def shards_at_a_time(self) -> int:
        """As `manifests.source.SourceSettings.shards_at_a_time`: one on a GPU, which its shards would share."""
        return 1 if self.device == "gpu" else 0

    def device_name(self, setting: str) -> str:
        """``cpu``, or the GPU's model name; raises `WrongUse` where the recipe asks for a GPU and there is none.

        Args:
            setting: key path of ``device``, for the message.
        """
        if self.device == "cpu":
            return "cpu"
        from twinset.models.device import gpu_name

        return gpu_name(setting)

    def check_device(self, key: str) -> None:
        """As `shards.contracts.Source.check_device`; ``key`` is that of these settings."""
        if self.device == "cpu":
            return
        try:
            from twinset.models.device import check_gpu
        except ImportError as error:
            raise WrongUse(f"{key}.device: {error}; pip install 'twinset[{self.extra}]'") from error
        check_gpu(f"{key}.device")


def check_installed(key: str, libraries: Iterable[str], extra: str) -> None:
    """Raise `WrongUse`, naming the setting and the optional dependencies, where a library is not installed."""
    for library in libraries:
        if find_spec(library) is None:
            if extra == "render" and sys.version_info[:2] != (3, 11):
                raise WrongUse(
                    f"{key}: Kubric needs Python 3.11, the only one that Blender's module `bpy` 4.2 is published for; "
                    f"this is Python {platform.python_version()}. Install twinset with Python 3.11 for this stage"
                )
            raise WrongUse(f"{key}: {library} is not installed; it is needed here: pip install 'twinset[{extra}]'")
