"""Captions that may be true of both images are scored, flagged and counted, by the small CLIP that ships."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Score
from twinset.contracts.recipe import load_recipe, parse_recipe
from twinset.filters.true_of_both import TrueOfBoth, TrueOfBothFilter
from twinset.shards.contracts import Context
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.index import FLAGGED, summarise, write_index
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import state_of

REASON = "true-of-both"


def judging(**settings: Any) -> TrueOfBothFilter:
    return TrueOfBoth(kind="true-of-both", model="small-clip", micro_batch=8, **settings).open()


@pytest.fixture(scope="module")
def twins() -> list[Pair]:
    source: Any = load_recipe("demo")["eq-ag"].source
    generator = source.open(Context("twins"))
    return [one for one in generator.make(list(islice(generator.plan(), 16))) if isinstance(one, Pair)]


def test_a_preference_is_the_smaller_of_two_differences() -> None:
    images, captions = (torch.nn.functional.normalize(torch.randn(3, 2, 8), dim=2) for _ in range(2))
    cosines = torch.einsum("nic,njc->nij", captions, images)  # (pairs, captions, images)
    expected = [float(min(one[0, 0] - one[0, 1], one[1, 1] - one[1, 0])) for one in cosines]
    assert judging().measure(images, captions).tolist() == pytest.approx(expected, abs=1e-6)


def test_captions_of_their_own_images_are_preferred_to_ones_of_both(twins: list[Pair]) -> None:
    judge = judging()
    scores = judge(twins)
    assert all(isinstance(one, Score) and one.name == "preference" for one in scores)
    # One sentence of two pictures cannot be nearer to both.
    told_alike = [replace(one, captions1=one.captions0) for one in twins]
    assert {one.flag for one in judge(told_alike) if isinstance(one, Score)} == {REASON}
    unflagged = [one for one in scores if isinstance(one, Score) and not one.flag]
    assert unflagged and all(one.value > 0 for one in unflagged)
    assert judge(twins[:3]) == scores[:3]  # whatever else is in a pass


def test_pairs_are_dropped_only_where_it_is_asked_for(twins: list[Pair]) -> None:
    told_alike = [replace(one, captions1=one.captions0) for one in twins[:2]]
    dropped = judging(drop_at_most=0)(told_alike)
    assert [one.reason for one in dropped if isinstance(one, Drop)] == [REASON] * 2


def test_a_model_that_gives_no_number_is_refused(twins: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrueOfBothFilter, "measure", lambda *_: torch.tensor([0.5, float("nan")] * 4))
    with pytest.raises(WrongUse, match=f"small-clip gives nan for {twins[1].key}: its weights are damaged"):
        judging()(twins[:2])


def test_a_build_flags_them_and_the_card_counts_them(tmp_path: Path) -> None:
    judge = {"kind": "true-of-both", "model": "small-clip", "micro_batch": 6, "flag_at_most": 2}
    places = {"annotations": "miniature:action_genome/annotations.pkl", "media": "miniature:action_genome/videos"}
    source = {"kind": "action-genome", **places, "frames": "video", "licence": "CC0-1.0"}
    subset = {"source": source, "filters": [judge], "count": 6, "shard_size": 6}
    store = Store(str(tmp_path / "out"))
    prepare(Job(parse_recipe({"name": "flags", "subsets": {"twins": subset}}), store), "twins")
    make_shard(store.root, "twins", 0)
    state = state_of(store, "twins")
    write_index(store, state, "pair")
    assert summarise(store, state).flagged == {REASON: 6}  # a difference of cosines is never above 2
    listed = pq.read_table(tmp_path / "out/twins/_meta" / FLAGGED)["key"].to_pylist()
    samples = list(read_samples(store, "twins"))
    assert listed == [one.key for one in samples] and all("preference" in one.json.scores for one in samples)
