"""Features and neighbours of images as stages: what they hold, and the search itself."""

import pytest
import torch

from twinset.generators.neighbours import source as search
from twinset.generators.neighbours.source import nearest


@pytest.mark.parametrize(("rows", "columns"), [(1024, 1 << 15), (3, 4)])
def test_the_search_in_blocks_is_the_whole_search(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    monkeypatch.setattr(search, "ROWS", rows)
    monkeypatch.setattr(search, "COLUMNS", columns)
    features = torch.nn.functional.normalize(torch.randn(23, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    cosines = (features @ features.T).fill_diagonal_(-torch.inf)
    for k in (1, 6, 22, 99):
        expected = cosines.topk(min(k, 22), dim=1)
        places, alike = nearest(features, k)
        assert torch.equal(places, expected.indices) and torch.allclose(alike, expected.values, atol=1e-6)
        assert torch.equal(nearest(features, k, slice(9, 14))[0], expected.indices[9:14])
