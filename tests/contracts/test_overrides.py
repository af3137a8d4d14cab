"""``--set`` changes any key of a recipe; odd ones are refused with what to write."""

from pathlib import Path

import pytest

from tests.contracts.conftest import refused
from twinset.contracts.recipe import load_recipe


def test_overrides_change_any_key(recipe: Path) -> None:
    loaded = load_recipe(
        str(recipe),
        [
            "seed=7",
            "description=a=b = c",
            "subsets.eq-ag.source.skip=2",
            "subsets.eq-ag.encoding.format=png",
            "subsets.eq-youcook2.filters=[{kind: faces}]",
            "subsets.eq-youcook2.filters.0.model=cnn",
        ],
    )
    assert (loaded.seed, loaded.description, loaded.subsets["eq-ag"].encoding.format) == (7, "a=b = c", "png")
    assert loaded.subsets["eq-ag"].source.model_dump()["skip"] == 2
    (faces,) = loaded.subsets["eq-youcook2"].filters
    assert faces.model_dump() == {"kind": "faces", "model": "cnn", "mode": "exact"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "write KEY.PATH=VALUE"),
        ("=1", "write KEY.PATH=VALUE"),
        ("", "write KEY.PATH=VALUE"),
        ("subsets..shard_size=1", "write KEY.PATH=VALUE"),
        (".seed=1", "write KEY.PATH=VALUE"),
        ("subsets.eq-ag.source.media=", "write KEY.PATH=VALUE"),
        ("seed=[1", "'[1' is not a YAML value (line 1, column 3: while parsing a flow sequence, expected ',' or ']'"),
        ("name=2026-99-99", "is not a YAML value"),
        ("name=a\x07b", "is not a YAML value (unacceptable character #x0007: special characters are not allowed in"),
        ("seed=!!python/object/apply:os.getcwd []", "is not a YAML value"),
        ("name.part=1", "holds a value, not keys"),
        ("name.part.more=1", "there is no 'part' under name"),
        ("subsets.eq-agg.shard_size=1", "no subset 'eq-agg'; the recipe has: eq-ag, eq-youcook2"),
        ("subsets.eq-youcook2.filters.7.kind=faces", "there is no '7' under subsets.eq-youcook2.filters"),
        ("subsets.eq-youcook2.filters.-1={kind: faces}", "there is no '-1' under subsets.eq-youcook2.filters"),
        ("subsets.eq-youcook2.filters.first.kind=faces", "there is no 'first' under subsets.eq-youcook2.filters"),
        ("subsets=5", "subsets: "),
        ("subsets=[eq-ag]", "subsets: "),
        ("subsets={}", "subsets: "),
        ("subsets={Eq_AG: {}}", "subset name 'Eq_AG' must be lowercase"),
        ("subsets.eq-ag=", "subsets.eq-ag: "),
        ("subsets.eq-ag.source=youcook2", "subsets.eq-ag.source: "),
        ("subsets.eq-ag.source.kind=coco", "--set subsets.eq-ag.source.kind: there is no source 'coco' here; install"),
        ("subsets.eq-ag.source.kind=gebcc", "source.kind: there is no source 'gebcc' here; did you mean 'gebc'?"),
        ("subsets.eq-youcook2.filters.0.kind=face", "there is no filter 'face' here; did you mean 'faces'?"),
        ("subsets.eq-ag.source.kind=5", "--set subsets.eq-ag.source.kind: a kind is a name"),
        ("seed=-1", "seed: "),
        ("seed=zero", "seed: "),
        (f"subsets.eq-ag.count={10**25}", "subsets.eq-ag.count: "),
        (f"subsets.eq-ag.shard_size={10**25}", "subsets.eq-ag.shard_size: "),
        ("max_missing=.nan", "max_missing: "),
        ("max_missing=2", "max_missing: "),
        ("sed=1", "--set sed: unknown key; did you mean 'seed'?"),
        ("zzz.part=1", "--set zzz: unknown key"),
        ("subsets.eq-ag.source.skip=-1", "--set subsets.eq-ag.source.skip: "),
        ("subsets.eq-youcook2.filters.².kind=faces", "there is no '²' under subsets.eq-youcook2.filters"),
        (f"subsets.eq-youcook2.filters.{'1' * 5000}=1", "under subsets.eq-youcook2.filters"),
        ("description=[&a x, *a]", "found an alias"),
        ("description={a: 1, a: 2}", "found the key 'a' twice"),
        ('description="\\ud800"', "half a surrogate pair"),
        ("seed=1:30", "found a number in base 60; put quotes round it"),
        ("subsets.eq-ag.source.media=/videos/\udcff", "is not a YAML value"),
        ("subsets.eq-ag.source.media=miniature:../..", "--set subsets.eq-ag.source.media: "),
        ("subsets.eq-ag.source.media=miniature:/etc", "leaves the folder of miniature"),
        ("subsets={" + "a" * 61 + ": {}}", "at most 60 characters"),
    ],
)
def test_odd_overrides_are_refused_with_what_to_write(recipe: Path, setting: str, message: str) -> None:
    assert message in refused(recipe, setting)


def test_only_what_set_changed_is_blamed_on_it(recipe: Path) -> None:
    recipe.write_text(recipe.read_text().replace("shard_size: 16", "shard_size: x"))
    first, second = refused(recipe, "subsets.eq-youcook2.pool=x", "subsets.eq-ag.source.media=/videos").splitlines()
    assert first.startswith(f"{recipe}: subsets.eq-youcook2.shard_size: ")
    assert second.startswith("--set subsets.eq-youcook2.pool: ")
