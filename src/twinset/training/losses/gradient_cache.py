"""Gradient caching (Gao et al. 2021): the gradient of a large contrastive batch with the memory of a small chunk.

Accumulating gradients over small batches does not do this: each small batch has only its own negatives. Here

1. all chunks are encoded without a graph, and their features kept: (n, d) numbers;
2. the loss of the whole batch gives the gradient of each feature;
3. each chunk is encoded again with a graph, and the kept gradient of its features is propagated into the parameters.

A step costs one more forward pass. The result equals the plain backward pass wherever the features of an example do not
depend on the rest of its chunk: batch normalisation in training mode does not qualify.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, concatenate

Inputs = Mapping[str, Tensor]
#: Inputs of a chunk → its features, and the scale. Both come out of the same call, so that a wrapper such as
#: DistributedDataParallel sees the parameter of the scale used in the pass that it synchronises.
Encode = Callable[[Inputs], tuple[Features, Tensor]]


def cached_backward(
    encode: Encode,
    inputs: Inputs,
    loss: Callable[[Features, Tensor], tuple[Tensor, dict[str, float]]],
    chunk: int,
    no_sync: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> tuple[Tensor, dict[str, float]]:
    """Add the gradient of a batch's loss to the parameters, ``chunk`` examples at a time.

    A chunk that is encoded a second time uses the same random numbers (dropout) as the first time.

    Args:
        encode: the model. With one chunk it is called once, as in a plain step.
        inputs: tensors by role, all with n rows.
        loss: of the features of the whole batch and the scale; may gather features of other processes.
        chunk: examples a pass; the last chunk may be smaller.
        no_sync: entered for every chunk but the last, such as ``DistributedDataParallel.no_sync``.

    Returns:
        The loss without its graph, and what it logged.

    Raises:
        WrongUse: the chunk size is below 1, or inputs differ in their number of rows.
    """
    sizes = {name: len(part) for name, part in inputs.items()}
    if chunk < 1 or len(set(sizes.values())) != 1:
        raise WrongUse(f"chunks of {chunk} examples of inputs with {sizes} rows; give chunks of 1 or more, equal rows")
    n = next(iter(sizes.values()))
    if chunk >= n:
        value, logged = loss(*encode(inputs))
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach(), logged
    chunks = [{name: part[start : start + chunk] for name, part in inputs.items()} for start in range(0, n, chunk)]
    states, parts = [], []
    with torch.no_grad():
        for one in chunks:
            states.append(_random_state(inputs))
            features, scale = encode(one)
            parts.append(features)
    leaves = concatenate(parts).map(lambda part: part.requires_grad_())
    scale = scale.detach().clone().requires_grad_()
    value, logged = loss(leaves, scale)
    value.backward()  # type: ignore[no-untyped-call]
    # A tensor that the loss does not use has no gradient: zeros, so that its parameters still get one.
    gradients = leaves.map(lambda part: torch.zeros_like(part) if part.grad is None else part.grad)
    scale_gradient = torch.zeros_like(scale) if scale.grad is None else scale.grad
    for place, one in enumerate(chunks):
        last = place == len(chunks) - 1
        with nullcontext() if last else no_sync(), torch.random.fork_rng(_gpus(inputs)):
            _set_random_state(inputs, states[place])
            features, scale = encode(one)
            start = place * chunk
            outputs = [*features.tensors(), scale]
            factors = [part[start : start + chunk] for part in gradients.tensors()]
            factors.append(scale_gradient if last else torch.zeros_like(scale_gradient))
            # Σ output · factor has the gradient ``factor`` at each output, and so its gradients in the parameters. What
            # has no graph, such as the features of a frozen encoder, is left out.
            parts_of_sum = [
                (output * factor).sum() for output, factor in zip(outputs, factors, strict=True) if output.requires_grad
            ]
            torch.stack(parts_of_sum).sum().backward()  # type: ignore[no-untyped-call]
    return value.detach(), logged


def _gpus(inputs: Inputs) -> list[torch.device]:
    """The GPUs that inputs lie on."""
    return list({part.device for part in inputs.values() if part.device.type == "cuda"})


def _random_state(inputs: Inputs) -> list[Tensor]:
    """States of torch's generators of the CPU and of the inputs' GPUs."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(gpu) for gpu in _gpus(inputs))]


def _set_random_state(inputs: Inputs, state: list[Tensor]) -> None:
    torch.set_rng_state(state[0])
    for gpu, one in zip(_gpus(inputs), state[1:], strict=True):
        torch.cuda.set_rng_state(one, gpu)
