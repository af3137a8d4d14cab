"""A scorer of another package: its columns, a selection by its score, and text pairs and a card that have it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from tests.generators.caption_scores.commas import Commas, count_commas, installed
from tests.generators.caption_scores.conftest import negatives
from tests.generators.selection.scored_stage import drawn, stage_of
from twinset import verify
from twinset.cards.lineage import cited
from twinset.contracts import doors
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.recipe import parse_recipe
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.contract import check_source
from twinset.generators.selection.source import SelectedNegatives
from twinset.generators.text_pairs import TextPairs
from twinset.shards.contracts import Context
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

OWN = {"commas_caption", "commas_negative"}


@pytest.fixture(scope="module", autouse=True)
def mylab() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "installed", installed)
        yield


def scores(*kinds: str) -> CaptionScores:
    scorers = [{"kind": kind} for kind in kinds]
    return CaptionScores.model_validate({"kind": "caption-scores", "negatives": "negatives", "scorers": scorers})


def test_its_columns_follow_those_of_every_table(tmp_path: Path) -> None:
    source = scores("mylab-commas")
    context = Context("scores", earlier=lambda _: negatives(tmp_path, [("A dog.", "A dog, a cat.")]))
    check_source(source, context)
    generator = source.open(context)
    (made,) = generator.make(list(generator.plan()))
    row = cast(TableRows, made).rows[0]
    assert generator.columns.names[-10:] == [*TEXT_SCORES, "commas_caption", "commas_negative", "truncated"]
    assert (row["commas_caption"], row["commas_negative"], row["vera_caption"]) == (0.5, 1.5, None)
    assert source.brought == {"scorers.0": "mylab 1.2"} and generator.weights() == {}
    citations = "".join(cited(source))
    assert "@misc{commas2020" in citations and "liu2023vera" not in citations


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn rows, their scores by commas: ``selected`` by these, and ``pairs`` made of them."""
    folder = tmp_path_factory.mktemp("commas")
    rows = [
        {**row, "commas_caption": n % 4 + 0.5, "commas_negative": n % 3 + 0.5, "vera_negative": None}
        for n, row in enumerate(drawn(400))
    ]
    stage_of(rows, folder)
    named = {"quality": ["commas"], "refine": ["commas"], "similarity": None, "quantile": 0.3}
    selection = {"kind": "selected-negatives", "scores": str(folder / "scores"), **named}
    pairs = {"kind": "text-pairs", "negatives": "selected", "scores": ["commas"], "licence": "CC0-1.0"}
    raw: dict[str, Any] = {
        "name": "text",
        "stages": {"selected": {"source": selection}},
        "subsets": {"pairs": {"source": pairs, "shard_size": 40}},
    }
    build_here(parse_recipe(raw), str(folder / "out"), 1)
    found = verify(str(folder / "out"))
    assert not any(one["problems"] for part in found.values() for one in part.values())
    return folder / "out"


def test_a_selection_keeps_its_score_and_names_its_package(out: Path) -> None:
    index = pq.read_table(out / "_stages/selected/_meta/index.parquet")
    gaps = [a - b for a, b in zip(*(index[name].to_pylist() for name in sorted(OWN)), strict=True)]
    assert len(gaps) > 50 and sum(gap > 0 for gap in gaps) == sum(gap < 0 for gap in gaps), "refined by it"
    assert min(index["commas_negative"].to_pylist()) >= 0.5
    facts = json.loads((out / "_stages/selected/_meta/stage.json").read_text())["facts"]
    assert facts["generator"]["parts"] == {"quality.commas": "mylab 1.2", "refine.commas": "mylab 1.2"}


def test_text_pairs_have_its_score_in_rows_and_on_the_card(out: Path) -> None:
    index = pq.read_table(out / "pairs/_meta/index.parquet")
    assert {*index.column_names} >= OWN and index["commas_negative"].null_count == 0
    card = (out / "pairs/README.md").read_text()
    assert "| higher number of commas |" in card and "mylab 1.2" in card
    assert list(read_samples(Store(str(out)), "pairs")) == [], "an index only"


def test_a_table_without_its_score_says_so(tmp_path: Path) -> None:
    earlier = stage_of(drawn(20), tmp_path)
    chosen = TextPairs.model_validate(
        {"kind": "text-pairs", "negatives": "scores", "scores": ["commas"], "licence": "CC0-1.0"}
    )
    with pytest.raises(WrongUse, match="has no column 'commas_caption'"):
        list(chosen.open(Context("pairs", earlier=lambda _: earlier)).plan())
    raw: dict[str, Any] = {
        "name": "n",
        "stages": {"scores": {"source": scores("mylab-commas").model_dump(mode="json") | {"negatives": "/x"}}},
        "subsets": {"s": {"source": {"kind": "selected-negatives", "scores": "scores", "similarity": None}}},
    }
    with pytest.raises(WrongUse, match="needs the score vera, and scores has only commas"):
        parse_recipe(raw)


def test_names_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        ValidationError, match="there is no caption scorer 'mylab-comma' here; did you mean 'mylab-commas'"
    ):
        scores("mylab-comma")
    with pytest.raises(ValidationError, match="no caption scorer here gives a score 'comma'; did you mean 'commas'"):
        TextPairs.model_validate({"kind": "text-pairs", "negatives": "x", "scores": ["comma"], "licence": "CC0-1.0"})
    with pytest.raises(ValidationError, match="scores, and commas is not a probability"):
        SelectedNegatives.model_validate(
            {"kind": "selected-negatives", "scores": "x", "rules": "paper", "quality": ["vera", "commas"]}
        )


def test_a_score_of_another_scorers_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commas, "score", "vera")
    with pytest.raises(ValidationError, match="mylab-commas calls its score 'vera', as vera does; its package"):
        scores("mylab-commas")


def test_too_few_scores_name_the_scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = scores("mylab-commas").open(Context("s", earlier=lambda _: negatives(tmp_path, [("A.", "B.")])))
    monkeypatch.setattr(Commas, "open", lambda self, device: lambda texts, size: count_commas(texts[:1], size))
    with pytest.raises(
        BuildFailed, match=r"caption scorer 'mylab-commas' of mylab 1\.2: 1 scores and 1 marks .* 2 texts"
    ):
        list(generator.make(list(generator.plan())))
