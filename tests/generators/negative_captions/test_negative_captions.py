"""The source of negative captions, and a build of its table."""

import json
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.recipe import load_recipe, parse_recipe
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.source import NegativeCaptions, Rules
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

pytest.importorskip("sng_parser")
MODEL = tuple(f"stages.negatives.source.engine.{one}" for one in ("model=m", "base_url=http://127.0.0.1:1/v1"))
TEXTS = ["A black dog sleeps on a red bench.", "A man riding a horse.", "Nothing at all", "A man riding a horse."]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    records = [{"caption_id": str(n), "image_id": f"image{n}", "caption": text} for n, text in enumerate(TEXTS)]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in [*records, {"caption": " "}]))
    return path


def source(captions: Path, **settings: Any) -> NegativeCaptions:
    return NegativeCaptions(kind="negative-captions", captions=(captions,), **settings)


def test_each_caption_is_asked_for_each_kind(captions: Path) -> None:
    generator = source(captions, kinds=tuple(KINDS)).open(Context("negatives"))
    planned = list(generator.plan())
    assert [one.negative_kind for one in planned] == list(KINDS) * len(TEXTS)
    assert generator.excluded.examples == [("empty-caption", "captions.jsonl line 5")]
    made = dict(zip([one.key for one in planned], generator.make(planned), strict=True))
    rows = [one.rows[0] for one in made.values() if isinstance(one, TableRows)]
    assert {"caption_id": "1", "image_id": "image1", "type": "swap", "subtype": "obj"}.items() <= rows[
        [row["negative_caption"] for row in rows].index("A horse riding a man.")
    ].items()
    nothing = [one.key for one in planned if one.caption_id == "2"]
    assert all(isinstance(made[key], Rejected) for key in nothing)


def test_rules_swap_and_add_only_where_a_recipe_asks_for_it(captions: Path) -> None:
    """Of what they swap and add few are right; language models write all seven kinds, as TROHN's did."""
    replaced = ["replace_obj", "replace_att", "replace_rel"]
    engine = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    for given in ({}, {"engine": {"kind": "rules"}}, {"engine": Rules()}):
        rules = source(captions, **given)
        assert list(rules.kinds) == replaced
        assert {one.counted_as for one in rules.open(Context("negatives")).plan()} == {*replaced}
    written = source(captions, engine=engine)
    assert list(written.kinds) == list(KINDS) == list(source(captions, engine=written.engine).kinds)
    assert source(captions, kinds=["swap_obj", "add_att"]).kinds == ("swap_obj", "add_att")
    assert source(captions, engine=engine, kinds=["replace_rel"]).kinds == ("replace_rel",)
    shipped = load_recipe("trohn", ["stages.negatives.source.engine.kind=openai", *MODEL])["negatives"].source
    assert isinstance(shipped, NegativeCaptions) and list(shipped.kinds) == list(KINDS)
    assert list(load_recipe("trohn")["negatives"].source.kinds) == replaced  # type: ignore[attr-defined]


def test_what_is_written_does_not_depend_on_what_is_written_with_it(captions: Path) -> None:
    generator = source(captions, kinds=("replace_obj", "add_obj")).open(Context("negatives"))
    planned = list(generator.plan())
    together = list(generator.make(planned))
    assert [next(iter(generator.make([one]))) for one in planned] == together
    (first, last) = (
        [one for one, of in zip(together, planned, strict=True) if of.caption_id == number] for number in ("1", "3")
    )
    assert first != last, "equal captions have keys of their own, so other chances"


@pytest.mark.slow
def test_a_build_makes_a_table_that_later_stages_read(captions: Path, tmp_path: Path) -> None:
    raw = {"name": "n", "subsets": {"negatives": {"source": source(captions).model_dump(mode="json"), "shard_size": 7}}}
    counts = build_here(parse_recipe(raw), str(tmp_path / "out"), 1)["subsets"]["negatives"]
    assert counts["planned"] == 3 * len(TEXTS) == counts["kept"] + sum(counts["rejected"].values())
    table = FinishedStage(Store(str(tmp_path / "out")), "negatives").read(
        ["caption", "negative_caption", "type", "subtype"]
    )
    assert len(table) == counts["kept"] and set(counts["rejected"]) == {"nothing-to-change"}
    build_here(parse_recipe(raw), str(tmp_path / "again"), 2)
    for path in (tmp_path / "out").rglob("*.parquet"):
        if not {"log"} & {*path.parts}:
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "out")).read_bytes()


def test_kinds_are_named_as_sugarcrepe_names_them() -> None:
    assert NegativeCaptions.row_schema.names[-2:] == ["type", "subtype"]
    assert list(KINDS) == [
        "replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"
    ]  # fmt: skip
