"""Random features of unit length."""

import torch
from torch.nn import functional

from twinset.training.losses.features import Features

SCALE = torch.tensor(7.0, dtype=torch.float64)


def features(n: int, seed: int, parts: int = 2, d: int = 5) -> Features:
    """Of n examples; parts: 2, or 3 or 4 with negative images and negative texts."""
    generator = torch.Generator().manual_seed(seed)
    return Features(*functional.normalize(torch.randn(parts, n, d, generator=generator, dtype=torch.float64), dim=2))
