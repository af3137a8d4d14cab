"""Gradient caching (Gao et al. 2021): the gradient of a large contrastive batch with the memory of a small chunk.

Accumulating gradients over small batches does not do this: each small batch has only its own negatives. Here chunks are
encoded and only their features are kept; the loss is that of the whole batch; and where its gradient reaches a chunk,
this is encoded again, by torch's activation checkpointing. A step costs one more forward pass. The result equals the
plain backward pass wherever the features of an example do not depend on the rest of its chunk: batch normalisation in
training mode does not qualify.
"""

from collections.abc import Callable, Mapping

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from twinset.training.losses.features import Features, concatenate

Inputs = Mapping[str, Tensor]
#: Inputs of a chunk → its features, and the scale.
Encode = Callable[[Inputs], tuple[Features, Tensor]]


def cached_backward(
    encode: Encode,
    inputs: Inputs,
    loss: Callable[[Features, Tensor], tuple[Tensor, dict[str, float]]],
    chunk: int,
) -> tuple[Tensor, dict[str, float]]:
    """Add the gradient of a batch's loss to the parameters, ``chunk`` examples at a time.

    A chunk that is encoded a second time uses the same random numbers (dropout) as the first time.

    Args:
        encode: the model. With one chunk it is called once, as in a plain step.
        inputs: tensors by role, all with n rows.
        loss: of the features of the whole batch and the scale; may gather features of other processes.
        chunk: examples a pass; below 1 it counts as 1, and the last chunk may be smaller.

    Returns:
        The loss without its graph, and what it logged.
    """
    parts = chunks(inputs, chunk)
    if len(parts) == 1:
        features, scale = encode(inputs)
    else:
        encoded = [checkpoint(encode, part, use_reentrant=False) for part in parts]
        features, scale = concatenate([of_part for of_part, _ in encoded]), encoded[0][1]
    value, logged = loss(features, scale)
    value.backward()  # type: ignore[no-untyped-call]
    return value.detach(), logged


def chunks(inputs: Inputs, chunk: int) -> list[Inputs]:
    """Inputs of ``chunk`` examples each, in order."""
    n, chunk = len(next(iter(inputs.values()))), max(1, chunk)
    return [{name: part[start : start + chunk] for name, part in inputs.items()} for start in range(0, n, chunk)]
