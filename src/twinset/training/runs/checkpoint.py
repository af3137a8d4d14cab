"""The checkpoint of a run: all of its state after a number of steps, in one file that is replaced whole.

It holds weights, buffers and the optimiser's state as ``model.NAME`` and ``optimiser.NUMBER.NAME``, the weights of the
best validation as ``best.NAME``, and `State` as JSON: no pickles.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from pydantic import BaseModel, NonNegativeInt

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.models.loading import saving
from twinset.shards.storage.whole_file import whole_file

FILE = "checkpoint.safetensors"
Tensors = Mapping[str, torch.Tensor]


class Best(BaseModel):
    """The best validation so far: the number of steps before it, and the figure by which it was chosen."""

    step: NonNegativeInt
    value: float


class State(BaseModel):
    """What a checkpoint has besides tensors.

    step: number of steps that were taken. identity: digest of the run. history: bytes of ``history.jsonl`` then.
    broken: number, place and reason of each example that could not be read so far.
    """

    identity: str
    step: NonNegativeInt = 0
    history: NonNegativeInt = 0
    best: Best | None = None
    broken: list[tuple[int, str, str]] = []


def write_checkpoint(out: Path, state: State, parts: Mapping[str, Tensors]) -> None:
    """Replace the checkpoint of a run. parts: tensors by ``model``, ``optimiser`` and ``best``. Raises `OSError`: the
    disk is full; the checkpoint before stays as it is.
    """
    tensors = {f"{part}.{name}": value for part, held in parts.items() for name, value in held.items()}
    write_tensors(out / FILE, tensors, {"state": state.model_dump_json()})


def read_checkpoint(out: Path, identity: str) -> tuple[State, dict[str, dict[str, torch.Tensor]]] | None:
    """What `write_checkpoint` wrote, on the CPU; None where there is none. Raises `WrongUse`: it is damaged, or of
    another run.
    """
    from safetensors import SafetensorError, safe_open

    path = out / FILE
    if not path.exists():
        return None
    parts: dict[str, dict[str, torch.Tensor]] = {"model": {}, "optimiser": {}, "best": {}}
    try:
        with safe_open(path, "pt") as file:
            state = State.model_validate_json((file.metadata() or {})["state"])
            for key in file.keys():  # noqa: SIM118
                part, _, name = key.partition(".")
                parts[part][name] = file.get_tensor(key)
        if state.identity != identity:
            raise ValueError("of another run")
    except (SafetensorError, OSError, LookupError, ValueError) as error:
        raise unusable(path, error) from error
    return state, parts


def unusable(path: Path, error: Exception) -> WrongUse:
    """The error for a checkpoint that cannot be used."""
    problem = str(error).splitlines()[0]
    return WrongUse(
        f"{path}: not a checkpoint of this run ({problem}); remove it, and the run begins again, or name another --out"
    )


def write_tensors(path: Path, tensors: Tensors, metadata: Mapping[str, str] | None = None) -> str:
    """Write tensors as safetensors, whole or not at all; returns the sha256, the same for the same tensors."""
    from safetensors.torch import save_file

    # Shared storage is refused by safetensors; a copy on the CPU is contiguous and its own.
    copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with whole_file(path) as beside:
        with saving(path, "the checkpoint before it is intact"):
            save_file(copies, beside, metadata={"format": "pt", **(metadata or {})})
        return sha256_of_file(beside)[0]


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimiser's state by ``NUMBER.NAME`` of its parameters; empty before the first step."""
    state = optimiser.state_dict()["state"]
    return {f"{number}.{name}": value for number, held in state.items() for name, value in held.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Give an optimiser the state that `optimiser_tensors` read. Raises `ValueError`: it is of other parameters."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
