"""Recipes: whatever is wrong with one is said before any work, with file, key path and remedy."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.contracts.conftest import refused
from twinset.contracts import doors
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import is_place, on_this_machine
from twinset.contracts.recipe import content_of, load_recipe, recipe_from_json, shipped_recipes
from twinset_demo import MINIATURE


def test_relative_paths_count_from_the_recipe_and_those_of_overrides_from_here(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    loaded = load_recipe(str(recipe))
    assert loaded.subsets["eq-ag"].source.annotations == tmp_path / "recipes" / "ann.pkl"
    assert loaded.subsets["eq-ag"].source.media == tmp_path / "videos"
    assert loaded.subsets["eq-youcook2"].source.annotations == Path("/data/ann.json")
    assert loaded.subsets["eq-youcook2"].source.media == Path("/home/someone/videos")
    loaded = load_recipe("../recipes/small.yaml", ["subsets.eq-ag.source.media=frames"])
    assert loaded.subsets["eq-ag"].source.media == tmp_path / "here" / "frames"
    assert loaded.subsets["eq-ag"].source.annotations == tmp_path / "recipes" / "ann.pkl"


def test_other_assets_have_no_known_licence_until_it_is_set() -> None:
    source = "subsets.eq-kubric-counting.source"
    settings = [f"{source}.assets=GSO.json", f"{source}.licence=CC-BY-4.0"]
    found = [load_recipe("demo", settings[:count])["eq-kubric-counting"].source.licence for count in range(3)]
    assert found == ["CC0-1.0", "unknown", "CC-BY-4.0"]


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_load_and_survive_the_way_to_a_worker(name: str) -> None:
    loaded = load_recipe(name)
    assert recipe_from_json(loaded.model_dump_json().encode()) == loaded
    for subset in loaded.subsets:
        alone = loaded.only([subset])
        needed = set(loaded.reads(subset))
        while further := {one for name in needed for one in loaded.reads(name)} - needed:
            needed |= further
        assert set(alone.stages) == needed and recipe_from_json(alone.model_dump_json().encode())


def test_a_package_lies_elsewhere_on_each_machine(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_recipe(str(recipe), ["subsets.eq-ag.source.media=miniature:action_genome/videos"])
    assert loaded.subsets["eq-ag"].source.media == MINIATURE / "action_genome/videos"
    travels = loaded.model_dump_json().encode()
    assert json.loads(travels)["subsets"]["eq-ag"]["source"]["media"] == "miniature:action_genome/videos"
    monkeypatch.setattr("twinset_demo.MINIATURE", Path("/there"))
    assert recipe_from_json(travels).subsets["eq-ag"].source.media == Path("/there/action_genome/videos")


def test_a_place_that_no_package_brings_is_refused_with_the_package_to_install(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert on_this_machine("s3://bucket/file") == "s3://bucket/file" and not is_place("s3://bucket/file")
    message = "--set subsets.eq-ag.source.media: Value error, there is no place 'nowhere' here; install the package"
    assert message in refused(recipe, "subsets.eq-ag.source.media=nowhere:videos")
    monkeypatch.setattr(doors, "installed", lambda group: {})
    monkeypatch.setattr(doors, "is_installed", lambda package: False)
    assert "comes with twinset-demo and twinset-extras: pip install ./demo ./extras" in refused(
        recipe, "subsets.eq-ag.source.media=miniature:videos"
    )
    with pytest.raises(WrongUse, match=r"no recipe 'demos': .*pip install \./demo ./extras"):
        load_recipe("demos")


def test_where_files_lie_and_where_it_runs_is_no_part_of_what_is_made(recipe: Path) -> None:
    def content(*settings: str) -> str:
        loaded = load_recipe(str(recipe), settings)
        return digest(content_of(loaded.subsets["eq-youcook2"], loaded.seed))

    source = "subsets.eq-youcook2.source"
    assert content() == content("subsets.eq-youcook2.pool=gpu", f"{source}.annotations=/x", f"{source}.media=/y")
    changed = ["seed=1", "subsets.eq-youcook2.shard_size=17", "subsets.eq-youcook2.filters.1.contrast=6"]
    changed += ["subsets.eq-youcook2.encoding.quality=94", f"{source}.licence=MIT", "subsets.eq-youcook2.split=val"]
    assert len({content(), *map(content, changed)}) == len(changed) + 1


def changed(recipe: Path, old: str, new: str) -> str:
    text = recipe.read_text()
    assert old in text
    recipe.write_text(text.replace(old, new))
    return refused(recipe)


def test_an_unknown_key_is_named_by_its_path_as_written_with_the_nearest_known_one(recipe: Path) -> None:
    assert changed(recipe, "shard_size", "shard_sizes") == (
        f"{recipe}: subsets.eq-youcook2.shard_sizes: unknown key; did you mean 'shard_size'?"
    )


def test_an_unknown_key_of_a_source_or_filter_is_too(recipe: Path) -> None:
    source = refused(recipe, "subsets.eq-ag.source.skips=1")
    assert source == "--set subsets.eq-ag.source.skips: unknown key; did you mean 'skip'?"
    chosen = refused(recipe, "subsets.eq-youcook2.filters.1.contrasts=1")
    assert chosen == "--set subsets.eq-youcook2.filters.1.contrasts: unknown key; did you mean 'contrast'?"
    nothing = refused(recipe, "subsets.eq-youcook2.filters.1.zzz=1")
    assert "filters.1.zzz: unknown key; known keys: contrast, kind" in nothing


def test_an_unknown_kind_is_said_once_and_blamed_on_who_named_it(recipe: Path) -> None:
    named = "subsets.eq-ag.source.kind: there is no source 'gebcc' here; did you mean 'gebc'?"
    assert refused(recipe, "subsets.eq-ag.source.kind=gebcc") == f"--set {named}"
    assert changed(recipe, "kind: action-genome", "kind: gebcc") == f"{recipe}: {named}"
    with pytest.raises(ValueError, match=r"subsets\.eq-ag\.source\.kind: there is no source 'gebcc' here"):
        recipe_from_json(json.dumps(yaml.safe_load(recipe.read_text())).encode())


def test_a_problem_of_a_source_does_not_hide_the_others(recipe: Path) -> None:
    settings = ("subsets.eq-ag.source.kind=gebcc", "subsets.eq-youcook2.filters.1.contrast=-1", "seed=-1")
    problems = refused(recipe, *settings).splitlines()
    assert [one.split(": ")[0] for one in problems] == [f"--set {setting.split('=')[0]}" for setting in settings]


def test_a_wrong_type_and_a_missing_key_are_named(recipe: Path) -> None:
    assert re.search(r"subsets\.eq-youcook2\.shard_size: .*integer", changed(recipe, "shard_size: 16", "shard_size: x"))
    recipe.write_text("name: small\n")
    assert (
        refused(recipe)
        == f"{recipe}: subsets: missing; name at least one under the key subsets, or a stage under stages"
    )
    recipe.write_text("name: small\nsubsets: {eq-ag: {source: {kind: action-genome, media: x}}}\n")
    assert "subsets.eq-ag.source.annotations: missing; add it" in refused(recipe)


@pytest.mark.parametrize(
    "content",
    [
        b"name: small\n\tsubsets: {",
        b"name: !!python/object:os.system\n",
        b"name: !!python/object/apply:os.system ['touch owned']\n",
        b"name: caf\xe9\n",
        b"name: 2026-99-99\n",
        b"[" * 5000,
        b"name: small\nname: other\n",
        b"name: small\nsubsets: {eq-ag: {shard_size: 1, 'shard_size': 2}}\n",
        b'name: small\ndescription: "\\ud800"\n',
        b"name: !!bool x\n",
        b"name: !!timestamp x\n",
        b"name: " + b"9" * 5000,
        b"name: x" + b" " * 1_000_000,
    ],
)
def test_what_is_not_plain_yaml_is_refused_and_runs_nothing(
    recipe: Path, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe.write_bytes(content)
    message = refused(recipe)
    assert str(recipe) in message and "cannot be read as YAML" in message and "correct the file" in message
    assert not (tmp_path / "owned").exists()


def test_a_small_file_cannot_fill_the_memory_with_aliases(recipe: Path) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))]
    recipe.write_text("\n".join([*lines, "subsets: {eq-ag: {source: {kind: *a11}}}"]))
    assert "found an alias (*name); write its value out" in refused(recipe)
    recipe.write_text(f"name: small\nsubsets: {{eq-ag: {{source: {{kind: {'x' * 900_000}}}}}}}\n")
    assert len(refused(recipe)) < 1000


@pytest.mark.parametrize("content", ["", "5", "- a", "just words"])
def test_yaml_that_is_no_mapping_is_refused(recipe: Path, content: str) -> None:
    recipe.write_text(content)
    assert "a recipe is a mapping with the keys name, description" in refused(recipe)


@pytest.mark.parametrize("name", ["no-such-recipe", "", "/", "a\0b"])
def test_a_recipe_that_is_not_there_names_those_that_are(name: str) -> None:
    with pytest.raises(WrongUse, match=r"name one of .*demo.*, or give the path of a YAML file"):
        load_recipe(name)


def test_only_some_subsets(recipe: Path) -> None:
    loaded = load_recipe(str(recipe))
    assert list(loaded.only(["eq-youcook2"]).subsets) == ["eq-youcook2"]
    assert list(loaded.only([]).subsets) == ["eq-ag", "eq-youcook2"]
    with pytest.raises(WrongUse, match="no subset 'other'; name one of eq-ag, eq-youcook2"):
        loaded.only(["eq-ag", "other"])
    with pytest.raises(WrongUse, match=r"no subset 'eq-agg'; did you mean 'eq-ag'\?"):
        loaded.only(["eq-agg"])


def test_stages_of_a_choice_that_is_not_made_are_left_out() -> None:
    decisions = {"chosen", "unambiguous"}
    every = load_recipe("bivlc")
    assert {*every.all} >= decisions and not decisions & {*every.only([]).all}
    people = load_recipe("bivlc", ["subsets.bivlc.source.choice=people"]).only([])
    assert [name for name in people.all if name in decisions] == ["chosen", "unambiguous"]
    assert list(every.only(["chosen"]).stages)[-1] == "chosen"
