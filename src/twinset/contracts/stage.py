"""A stage of a build: what decides its bytes, its digest, and the record of its plan."""

import json
import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import Field

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.receipt import Model

# Of what the engine writes: rows, plan, receipts and the stage record. Raised with any change to their bytes, so that
# older shards go stale and are made again.
SCHEMA_VERSION = 4
ANY_RUNTIME = "any"
#: Distributions whose version can change what a neural network gives: GPU workers have other builds of them.
NETWORK_LIBRARIES = (
    *("torch", "torchvision", "diffusers", "transformers", "tokenizers", "gguf", "open_clip_torch"),
    *("dlib-bin", "dlib"),
)


class Facts(Model):
    """All that decides the bytes of a stage's shards but the runtime class."""

    schema_version: int = SCHEMA_VERSION
    makes: str  # name of the kind of its samples, or ``table``
    settings: dict[str, Any]  # as `contracts.recipe.content_of`
    inputs: str  # digest of what planning reads
    generator: dict[str, Any]  # kind, version and sha256 of weights
    filters: list[dict[str, Any]]  # the same of each
    libraries: dict[str, str]  # versions of those that touch the bytes


class Stage(Model):
    """Written last of a plan, as its receipt."""

    schema_version: int = SCHEMA_VERSION
    name: str
    facts: dict[str, Any]  # `Facts`
    content: str  # digest of the facts
    plan: str  # digest over all slices
    count: int | None = None  # candidates requested; all when None
    plan_inputs: str = ""  # as of `shards.contracts.Source`
    planned: int
    shards: int
    kinds: dict[str, int] = Field(default={})  # candidates by what they are counted as
    excluded: dict[str, int]  # what planning left out, by reason
    examples: list[tuple[str, str]] = Field(default=[])  # reason and place of the first that were left out


def parse_stage(where: str, content: bytes) -> Stage:
    """The stage record; raises `WrongUse` when the file is not one."""
    try:
        stage = Stage.model_validate(json.loads(content))
        canonical_json(Facts.model_validate(stage.facts).model_dump())  # no NaN
        return stage
    except (ValueError, RecursionError) as error:
        remedy = "if it was damaged, run the same build again; else build into a new --out"
        raise WrongUse(f"{where}: not a stage record of this version of twinset; {remedy}") from error


def runtime_class(device: str = "cpu", threads: int = 1, micro_batch: int = 1) -> str:
    """Machines of one class give the same bytes where a neural network takes part: the digest of `runtime_facts`."""
    return digest(runtime_facts(device, threads, micro_batch))


def runtime_facts(device: str = "cpu", threads: int = 1, micro_batch: int = 1) -> dict[str, Any]:
    """What a network's last bits depend on.

    device: ``cpu`` or the GPU's model name. threads: torch threads. micro_batch: samples a forward pass.
    """
    return {
        "machine": platform.machine(),
        "instructions": _instruction_set() if device == "cpu" else "",
        "device": device,
        "threads": threads,
        "micro_batch": micro_batch,
        "libraries": versions_of(NETWORK_LIBRARIES),
    }


def _instruction_set(about: str = "/proc/cpuinfo") -> str:
    # Kernels are chosen by the widest vector unit and, in MKL, by the maker; they round differently.
    try:
        first = Path(about).read_text("ascii", "replace").partition("\n\n")[0]
    except OSError:
        return platform.processor()
    facts = dict(re.findall(r"^(\w+)\s*: (.*)$", first, re.MULTILINE))
    units, maker = facts.get("flags", "").split(), facts.get("vendor_id", "GenuineIntel")
    widest = next((name for name in ("avx512f", "avx2", "avx", "sse4_2") if name in units), "")
    return widest if maker == "GenuineIntel" else f"{maker} {widest}".strip()


def versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Versions by name; ``absent`` where one is not installed."""
    return {name: _version(name) for name in sorted(set(distributions))}


def _version(name: str) -> str:
    # The headless package has the same code without windows on a screen.
    for distribution in (name, f"{name}-headless") if name == "opencv-python" else (name,):
        with suppress(PackageNotFoundError):
            return version(distribution)
    return "absent"
