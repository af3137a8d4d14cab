"""Ranges of shards that no pool takes."""

from typing import Any
from uuid import UUID

import pytest
from prefect.exceptions import ObjectNotFound

from twinset.flows import pools
from twinset.manifests.errors import BuildFailed


def test_a_deployment_that_is_missing_is_named_with_what_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefect deploy --all` stops at the first absent pool; runs failed with `ObjectNotFound: None`."""

    def absent(*_: Any, **__: Any) -> UUID:
        raise ObjectNotFound(Exception())

    monkeypatch.setattr(pools, "run_deployment", absent)
    part = pools.Range("s3://bucket/out", "eq-ag", "render", "c", "p", 0, 99)
    with pytest.raises(BuildFailed, match="eq-ag shards 0-99: Prefect has no deployment build-shards/render") as error:
        pools._submit(part.piece(0, None))
    assert "prefect work-pool create render --type process" in str(error.value)
