"""Checkpoints in the layouts that papers published: read without code, and fitted to an architecture or refused.

Layouts: plain weights; open_clip's training checkpoints, such as NegCLIP's (``state_dict``); BiVLC's
(``model_state_dict``); GeneCIS's and CLIP4Cir's (``clip_model`` and ``combiner``, ``CLIP`` and ``Combiner``); any of
them with ``module.`` before each name, as DistributedDataParallel writes it, ``_orig_mod.`` of torch.compile, or
``model.`` of Lightning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinset.contracts.errors import WrongUse
from twinset.models.files import ModelMissing
from twinset.models.loading import LONGEST, check_archive, loading

if TYPE_CHECKING:
    import torch

CLIP_PARTS = ("model_state_dict", "state_dict", "clip_model", "CLIP", "model")
COMBINER_PARTS = ("combiner", "Combiner", "model_state_dict", "state_dict")
PREFIXES = frozenset({"module", "model", "_orig_mod", "clip_model", "clip"})
#: Numbers that OpenAI's archives have among the weights; they are no tensors of the model.
_SIZES = frozenset({"input_resolution", "context_length", "vocab_size"})
Weights = dict[str, "torch.Tensor"]


class _Number:
    """Takes the place of NumPy's values beside the weights, such as the best score, without reading them."""

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


_CORE = tuple(f"{core}.multiarray.{made}" for core in ("core", "_core") for made in ("scalar", "_reconstruct"))
_NUMPY: list[Any] = [(_Number, f"numpy.{name}") for name in ("dtype", "ndarray", *_CORE)]


def read_weights(path: Path, parts: tuple[str, ...] = CLIP_PARTS) -> Weights:
    """Tensors of a checkpoint by their plain names.

    Args:
        path: ``.safetensors``, or a file of ``torch.save``; nothing but tensors and plain values is unpickled, and
            numbers of NumPy are passed over.
        parts: keys under which the model may lie, the likeliest first.

    Raises:
        ModelMissing: the file is not there.
        WrongUse: it is damaged, holds code, or holds no weights.
    """
    import torch

    if not path.is_file():
        raise ModelMissing(f"there is no checkpoint {path}: put it there, or name its place after the last colon")
    loaded = _loaded(path)
    if isinstance(loaded, Mapping):
        loaded = next((loaded[part] for part in parts if isinstance(loaded.get(part), Mapping)), loaded)
    weights = {name: loaded[name] for name in loaded if name not in _SIZES} if isinstance(loaded, Mapping) else {}
    wrong = next((name for name, value in weights.items() if not isinstance(value, torch.Tensor)), None)
    if not weights or wrong is not None:
        holds = f"under {wrong!r} a value that is not a tensor" if wrong is not None else "no tensors by name"
        raise WrongUse(f"{path}: not weights of a model, it holds {holds}; known parts are {', '.join(parts)}")
    while len(first := {name.partition(".")[0] for name in weights}) == 1 and first <= PREFIXES:
        weights = {name.partition(".")[2]: value for name, value in weights.items()}
    return weights


def _loaded(path: Path) -> Any:
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        with loading(path):
            return load_file(path)
    check_archive(path)
    with loading(path), torch.serialization.safe_globals(_NUMPY):
        return torch.load(path, map_location="cpu", weights_only=True)


def fit(network: torch.nn.Module, weights: Weights, path: Path, architecture: str) -> None:
    """Load weights into a network of which every tensor must be given, with its shape.

    Args:
        architecture: for messages.

    Raises:
        WrongUse: names or shapes differ. Or weights are NaN, or quantised, sparse or complex: they would be loaded as
            other numbers.
    """
    import torch

    expected = network.state_dict()
    scale = weights.get("logit_scale")
    if scale is not None and scale.numel() == 1 and "logit_scale" in expected:
        weights = weights | {"logit_scale": scale.reshape(expected["logit_scale"].shape)}  # () or (1,), by version
    if any(name.startswith(("text_model.", "vision_model.")) for name in weights):
        raise WrongUse(
            f"{path}: weights in transformers' layout, and {architecture} is of open_clip; name the folder that holds "
            "them with their config.json, as clip:FOLDER or siglip:FOLDER, or get the model in open_clip's layout"
        )
    for name in expected.keys() & weights.keys():
        value, floating = weights[name], expected[name].is_floating_point()
        plain = value.layout == torch.strided and not value.is_meta and not value.is_complex()
        if not plain or value.is_floating_point() != floating or (floating and not value.isfinite().all()):
            raise WrongUse(
                f"{path}: {name} ({value.layout} {value.dtype} on {value.device}) holds NaN, infinity or numbers that "
                f"{architecture} does not run with; get the checkpoint in float32, float16 or bfloat16"
            )
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise WrongUse(
            f"{path}: a checkpoint of another architecture than {architecture}, or of more than the model "
            f"({' '.join(str(error).split())[:LONGEST]}); name the architecture that it was trained as, or save the "
            "model's part alone"
        ) from error
