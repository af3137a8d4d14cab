"""Hard negatives sampled from a batch, each with a probability that grows with its similarity."""

import torch
from torch import Tensor
from torch.nn import functional

from twinset.contracts.errors import WrongUse


def sample_hard(logits: Tensor, number: int, generator: torch.Generator | None = None) -> Tensor:
    """For each row, distinct columns other than the row's own, one after another with probability softmax(logits).

    By the Gumbel trick: the ``number`` largest of logits − log(e), where e is exponential noise, are such a sample
    without replacement. Unlike torch.multinomial on the softmax it needs no weight above zero: at temperature 100 most
    weights of a row underflow.

    Args:
        logits: shape (n, n); the diagonal is not sampled.
        number: of columns a row; at most n − 1 of them exist.
        generator: on the CPU, so that the sample does not depend on the device.

    Returns:
        Columns, int64, shape (n, min(number, n − 1)).

    Raises:
        WrongUse: the batch has fewer than two rows, or ``number`` is below 1.
    """
    if number < 1:
        raise WrongUse(f"samples={number}: sample 1 hard negative or more for each row")
    if len(logits) < 2:
        raise WrongUse("a batch of one example has no negatives to sample; set the batch to 2 or more")
    noise = torch.empty(logits.shape, dtype=torch.float32).exponential_(generator=generator).to(logits.device)
    keys = logits.detach().float() - noise.log()
    return keys.fill_diagonal_(-torch.inf).topk(min(number, len(logits) - 1), dim=1).indices


def sample_pairs(logits: Tensor, number: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Hard images for each text, and hard texts for each image, as EqSim's released code samples both.

    Returns:
        images: places of images sampled for text i from softmax(logits[:, i]), shape (n, k).
        texts: places of texts sampled for image i from softmax(logits[i, :]), shape (n, k).
    """
    images = sample_hard(logits.T, number, generator)
    return images, sample_hard(logits, number, generator)


def chosen(indices: Tensor, n: int) -> Tensor:
    """Indices (n, k) as a mask (n, n) that is true where column j was chosen for row i."""
    return functional.one_hot(indices, n).any(1)
