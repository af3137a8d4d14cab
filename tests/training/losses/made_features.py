"""Random features of unit length."""

import torch
from torch.nn import functional

from twinset.training.losses.features import Features

SCALE = torch.tensor(7.0, dtype=torch.float64)


def features(n: int, seed: int, d: int = 5) -> Features:
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return Features(*functional.normalize(parts, dim=2))
