"""Hard negatives sampled from a batch by their similarity, and a regulariser that trains on them alone."""

import torch
from torch import Tensor
from torch.nn import functional

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import SAMPLES


def sample_hard(logits: Tensor, number: int, generator: torch.Generator | None = None) -> Tensor:
    """For each row, distinct columns other than the row's own, one after another with probability softmax(logits).

    By the Gumbel trick: the ``number`` largest of logits − log(e), where e is exponential noise, are such a sample
    without replacement. Unlike torch.multinomial on the softmax it needs no weight above zero: at temperature 100 most
    weights of a row underflow.

    Args:
        logits: shape (n, n); the diagonal is not sampled.
        generator: on the CPU, so that the sample does not depend on the device.

    Returns:
        Columns, int64, shape (n, min(number, n − 1)). Raises `WrongUse`: the batch has fewer than two rows.
    """
    if len(logits) < 2:
        raise WrongUse("a batch of one example has no negatives to sample; set the batch to 2 or more")
    noise = torch.empty(logits.shape, dtype=torch.float32).exponential_(generator=generator).to(logits.device)
    keys = logits.detach().float() - noise.log()
    return keys.fill_diagonal_(-torch.inf).topk(min(number, len(logits) - 1), dim=1).indices


def sample_pairs(logits: Tensor, number: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """As EqSim's released code samples both: images for text i from softmax(logits[:, i]), and texts for image i from
    softmax(logits[i, :]). Returns their places, shapes (n, k).
    """
    images = sample_hard(logits.T, number, generator)
    return images, sample_hard(logits, number, generator)


class HardNegatives:
    """HardNeg: the baseline that only trains on sampled hard negatives (EqBen, section 5.4, Table 6).

    There it is a fusion encoder's matching head (`training.losses.fusion`). A dual encoder has no such head. Here a
    row's own logit is contrasted with those of the sampled columns only, so that this regulariser sees the pairs that
    EqSim's released form sees, and no others:

        ½ · mean_i −log(exp(L_ii) / (exp(L_ii) + Σ_{j in texts_i} exp(L_ij)))
      + ½ · mean_i −log(exp(L_ii) / (exp(L_ii) + Σ_{j in images_i} exp(L_ji)))
    """

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        logits = at_least_float32(scale) * similarities(features.images, features.texts)
        images, texts = sample_pairs(logits, SAMPLES, generator)
        own = logits.diagonal()[:, None]
        rows = torch.cat(
            [torch.cat([own, logits.gather(1, texts)], 1), torch.cat([own, logits.T.gather(1, images)], 1)]
        )
        loss = functional.cross_entropy(rows, torch.zeros(len(rows), dtype=torch.int64, device=rows.device))
        return loss, {"hard_above_own": float((rows[:, 1:] >= rows[:, :1]).float().mean())}
