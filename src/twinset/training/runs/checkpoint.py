"""The checkpoint of a run: all of its state after a number of steps, in one file that is replaced whole.

It holds weights, buffers and the optimiser's state as ``model.NAME`` and ``optimiser.NUMBER.NAME``, the weights of the
best validation as ``best.NAME``, and `State` as JSON: no pickles.
"""

from collections import defaultdict
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


class State(BaseModel):
    """What a checkpoint has besides tensors.

    identity: digest of the run. step: number of steps that were taken. history: bytes of ``history.jsonl`` then.
    best_step, best_value: of the best validation so far, and the figure by which it was chosen. broken: number, place
    and reason of each example that could not be read so far.
    """

    identity: str
    step: NonNegativeInt = 0
    history: NonNegativeInt = 0
    best_step: NonNegativeInt = 0
    best_value: float | None = None
    broken: list[tuple[int, str, str]] = []


def write_checkpoint(
    out: Path, state: State, network: torch.nn.Module, optimiser: torch.optim.Optimizer, best: Tensors
) -> None:
    """Replace the checkpoint of a run. Raises `OSError`: the disk is full; the checkpoint before stays as it is."""
    tensors = {f"model.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for number, moments in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": value for name, value in moments.items()}
    write_tensors(out / FILE, tensors, {"state": state.model_dump_json()})


def restore(
    out: Path, identity: str, network: torch.nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[State, Tensors]:
    """Give network and optimiser what `write_checkpoint` wrote; returns the state, and the best weights on the CPU. As
    at the first step where there is no checkpoint. Raises `WrongUse`: it is damaged, or of another run.
    """
    from safetensors import SafetensorError, safe_open

    path, parts = out / FILE, defaultdict[str, dict[str, torch.Tensor]](dict)
    if not path.exists():
        return State(identity=identity), {}
    try:
        with safe_open(path, "pt") as file:
            state = State.model_validate_json(file.metadata()["state"])
            for key in file.keys():  # noqa: SIM118
                part, _, name = key.partition(".")
                parts[part][name] = file.get_tensor(key)
        if state.identity != identity:
            raise ValueError("of another run")
        network.load_state_dict(parts["model"])
        moments = defaultdict[int, dict[str, torch.Tensor]](dict)
        for key, value in parts["optimiser"].items():
            number, _, name = key.partition(".")
            moments[int(number)][name] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": dict(moments)})
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        problem = str(error).splitlines()[0]
        raise WrongUse(
            f"{path}: not a checkpoint of this run ({problem}); remove it, and the run begins again, or name another "
            "--out"
        ) from error
    return state, parts["best"]


def write_tensors(path: Path, tensors: Tensors, metadata: Mapping[str, str] | None = None) -> str:
    """Write tensors as safetensors, whole or not at all; returns the sha256, the same for the same tensors."""
    from safetensors.torch import save_file

    # Shared storage is refused by safetensors; a copy on the CPU is contiguous and its own.
    copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with whole_file(path) as beside:
        with saving(path, "the checkpoint before it is intact"):
            save_file(copies, beside, metadata={"format": "pt", **(metadata or {})})
        return sha256_of_file(beside)[0]
