"""What losses compare: features of a batch or of all processes, their similarities, and the form of every loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn import functional

from twinset.contracts.errors import WrongUse


@dataclass(frozen=True, slots=True)
class Features:
    """Features with norm 1 of n examples.

    Attributes:
        images: of the images, shape (n, d).
        texts: of the captions, shape (n, d); caption i describes image i.
        negative_images: of images that caption i does not describe, shape (n, d).
        negative_texts: of captions that do not describe image i, shape (n, d). With both negatives, negative text i
            describes negative image i.
    """

    images: Tensor
    texts: Tensor
    negative_images: Tensor | None = None
    negative_texts: Tensor | None = None

    def __len__(self) -> int:
        return len(self.images)

    def map(self, change: Callable[[Tensor], Tensor]) -> Features:
        """The features with a function applied to each tensor."""
        given = {field.name: part for field in fields(self) if (part := getattr(self, field.name)) is not None}
        return Features(**{name: change(part) for name, part in given.items()})

    def all_pairs(self) -> Features:
        """Negative images and texts as n further matched pairs; raises `WrongUse` where one of them is missing."""
        images, texts = self.require("negative_images"), self.require("negative_texts")
        return Features(torch.cat([self.images, images]), torch.cat([self.texts, texts]))

    def require(self, name: str) -> Tensor:
        """A negative's features by their field; raises `WrongUse` where the batch has none."""
        part: Tensor | None = getattr(self, name)
        if part is None:
            raise WrongUse(
                f"this loss compares {name.replace('_', ' ')}, but the batch has none; "
                "train on twins or text pairs that have them, or choose --objective infonce"
            )
        return part


def concatenate(parts: Sequence[Features]) -> Features:
    """Features of consecutive chunks of a batch as one."""
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Features)}
    return Features(**{name: torch.cat(column) for name, column in columns.items() if column[0] is not None})


def similarities(rows: Tensor, columns: Tensor) -> Tensor:
    """Cosines of features with norm 1, shape (rows, columns), computed in at least float32, also under autocast.

    bfloat16 has 8 bits of precision: at a scale of 100 its rounding alone moves a logit by up to 0.4.
    """
    with torch.autocast(rows.device.type, enabled=False):
        return at_least_float32(rows) @ at_least_float32(columns).T


def at_least_float32(values: Tensor) -> Tensor:
    """Values in float32, or in float64 where they are so."""
    return values if values.dtype == torch.float64 else values.float()


def chosen(rows: Tensor, answers: Tensor) -> tuple[Tensor, float]:
    """Mean cross-entropy of rows of logits, and the share of rows whose highest logit is the answer.

    answers: columns, int64, shape (rows,).
    """
    right = (rows.detach().argmax(dim=1) == answers).float().mean()
    return functional.cross_entropy(rows, answers), float(right)


class Loss(Protocol):
    """A loss of a batch: an objective, a regulariser, or their sum."""

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss, a scalar in float32 or float64, and what is logged beside it.

        Args:
            features: of the batch. Gather them first where several processes train.
            scale: what cosines are multiplied by, a scalar: the inverse temperature, not its logarithm.
            generator: of what is sampled, on the CPU; every process needs the same state. None: torch's own.
        """


def gather(features: Features) -> Features:
    """Features of all processes in the order of their ranks, shapes (world · n, d); the same on each.

    Every process then computes the same loss of the whole batch. Backward sums, over processes, the gradients of each
    process's own features: the mean of the processes' gradients of a parameter is that of one process on the whole
    batch. Every process needs the same n.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return features
    from torch.distributed.nn.functional import all_gather

    return features.map(lambda part: torch.cat(all_gather(part.contiguous())))  # type: ignore[no-untyped-call]
