"""Recipes: whatever is wrong with one is said before any work, with file or ``--set``, key path and remedy."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, content_of, load_recipe, recipe_from_json, shipped_recipes
from twinset_demo import MINIATURE

SMALL: dict[str, Any] = {
    "name": "small",
    "subsets": {
        "eq-ag": {"source": {"kind": "action-genome", "annotations": "ann.pkl", "media": "../videos"}},
        "eq-youcook2": {
            "source": {"kind": "youcook2", "annotations": "/data/ann.json", "media": "~/videos"},
            "filters": [{"kind": "faces"}, {"kind": "blank", "contrast": 5}],
            "shard_size": 16,
        },
    },
}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipes" / "small.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(SMALL))
    return path


def refused(recipe: Path, *settings: str) -> str:
    with pytest.raises(WrongUse) as caught:
        load_recipe(str(recipe), settings)
    return str(caught.value)


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_load_and_survive_the_way_to_a_worker(name: str) -> None:
    loaded = load_recipe(name)
    assert recipe_from_json(loaded.model_dump_json().encode()) == loaded
    for subset in loaded.subsets:
        alone = loaded.only([subset])
        needed = set(loaded.reads(subset))
        while further := {read for stage in needed for read in loaded.reads(stage)} - needed:
            needed |= further
        assert set(alone.stages) == needed and recipe_from_json(alone.model_dump_json().encode())


def test_paths_of_overrides_count_from_here(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    source = load_recipe(str(recipe)).subsets["eq-ag"].source
    assert (source.annotations, source.media) == (tmp_path / "recipes" / "ann.pkl", tmp_path / "videos")
    source = load_recipe(str(recipe)).subsets["eq-youcook2"].source
    assert (source.annotations, source.media) == (Path("/data/ann.json"), Path("/home/someone/videos"))
    source = load_recipe("../recipes/small.yaml", ["subsets.eq-ag.source.media=a #1"]).subsets["eq-ag"].source
    assert (source.annotations, source.media) == (tmp_path / "recipes" / "ann.pkl", tmp_path / "here" / "a #1")


def test_a_package_lies_elsewhere_on_each_machine(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_recipe(str(recipe), ["subsets.eq-ag.source.media=miniature:action_genome/videos"])
    assert loaded.subsets["eq-ag"].source.media == MINIATURE / "action_genome/videos"
    travels = loaded.model_dump_json().encode()
    assert json.loads(travels)["subsets"]["eq-ag"]["source"]["media"] == "miniature:action_genome/videos"
    monkeypatch.setattr("twinset_demo.MINIATURE", Path("/there"))
    assert recipe_from_json(travels).subsets["eq-ag"].source.media == Path("/there/action_genome/videos")


def test_where_files_lie_and_where_it_runs_is_no_part_of_what_is_made(recipe: Path) -> None:
    def content(*settings: str) -> str:
        loaded = load_recipe(str(recipe), settings)
        return digest(content_of(loaded.subsets["eq-youcook2"], loaded.seed))

    source = "subsets.eq-youcook2.source"
    assert content() == content("subsets.eq-youcook2.pool=gpu", f"{source}.annotations=/x", f"{source}.media=/y")
    changed = ["seed=1", "subsets.eq-youcook2.shard_size=17", "subsets.eq-youcook2.filters.1.contrast=6"]
    changed += ["subsets.eq-youcook2.encoding.quality=94", f"{source}.licence=MIT", "subsets.eq-youcook2.split=val"]
    assert len({content(), *map(content, changed)}) == len(changed) + 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "write KEY.PATH=VALUE"),
        ("seed=[1", "'[1' is not a YAML value (while parsing a flow sequence in "),
        ("subsets.eq-ag.source.media=/videos/\udcff", "is not a YAML value"),
        ("subsets.eq-agg.shard_size=1", "no 'eq-agg' under subsets; the recipe has: eq-ag, eq-youcook2"),
        ("subsets.eq-youcook2.filters.².kind=faces", "no '²' under subsets.eq-youcook2.filters"),
        ("subsets.eq-ag.screening=maybe", "subsets.eq-ag.screening: Value error, write true, false, or settings of pa"),
        ("subsets={" + "a" * 61 + ": {}}", "at most 60 characters"),
        ("subsets.eq-ag.source.media=miniature:../..", "leaves the folder of miniature"),
        ('subsets.eq-ag.source.media="\\0"', "source.media: Value error, a NUL, which no path"),
        ("subsets.eq-ag.source.media=nowhere:videos", "source.media: Value error, there is no place 'nowhere' here; "),
    ],
)
def test_odd_overrides_are_refused_with_what_to_write(recipe: Path, setting: str, message: str) -> None:
    assert message in refused(recipe, setting)


def test_all_problems_are_said_at_once_each_blamed_on_who_wrote_it(recipe: Path) -> None:
    recipe.write_text(recipe.read_text().replace("shard_size: 16", "shard_sizes: 16"))
    settings = ("subsets.eq-ag.source.kind=gebcc", "subsets.eq-ag.pool=x", "seed=-1", "subsets.eq-ag.split=val")
    blamed = {problem.split(": ")[0] for problem in refused(recipe, *settings).splitlines()}
    assert blamed == {str(recipe), *(f"--set {setting.split('=')[0]}" for setting in settings[:3])}
    assert f"{recipe}: subsets.eq-youcook2.shard_sizes: unknown key; did you mean 'shard_size'?" in refused(recipe)
    copies = "{kind: screened-pairs, pairs: a/b, decisions: a/c}, filters: [{kind: motion-words}]"
    recipe.write_text(f"name: small\nsubsets: {{eq-ag: {{source: {copies}}}}}\n")
    assert refused(recipe, "subsets.eq-ag.shard_size=3").startswith(f"{recipe}: subsets.eq-ag: Value error, filter")
    recipe.write_text("name: small\n")
    assert f"{recipe}: subsets: missing; name at least one under the key subsets, or a stage" in refused(recipe)


@pytest.mark.parametrize(
    "content",
    [
        b"name: small\n\tsubsets: {",
        b"name: !!python/object/apply:os.system ['touch owned']\n",
        b"[" * 2000,
        b"name: small\nsubsets: {eq-ag: {shard_size: 1, 'shard_size': 2}}\n",
        b'name: small\ndescription: "\\ud800"\n',
        b"name: " + b"9" * 5000,
        b"name: x" + b" " * 1_000_000,
        b"a: &a [x]\nb: [*a, *a]",
        b"name: small\n<<: {seed: 1, seed: 2}",
    ],
)
def test_only_yaml_is_read(recipe: Path, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe.write_bytes(content)
    message = refused(recipe)
    assert str(recipe) in message and "cannot be read as YAML" in message and "correct the file" in message
    assert not (tmp_path / "owned").exists()


def test_messages_stay_short_and_name_what_there_is(recipe: Path) -> None:
    recipe.write_text(f"name: small\nsubsets: {{eq-ag: {{source: {{kind: {'x' * 90_000}}}}}}}\n")
    assert len(refused(recipe)) < 1000
    for name in ("no-such-recipe", "/", "a\0b"):
        with pytest.raises(WrongUse, match=r"name one of .*demo"):
            load_recipe(name)


GRAPHS = {"source": {"kind": "scene-graphs", "captions": "captions.json"}, "shard_size": 100}
TRIPLETS: dict[str, Any] = {
    "source": {"kind": "genecis-triplets", "graphs": "graphs", "concreteness": "ratings.txt", "licence": "MIT"},
    "count": 10,
}
TEMPLATES = {"source": {"kind": "genecis-objects", "task": "focus", "annotations": "a.json", "media": "m"}}


def load(folder: Path, stages: dict[str, Any], subsets: dict[str, Any], *settings: str) -> Recipe:
    (folder / "r.yaml").write_text(json.dumps({"name": "r", "stages": stages, "subsets": subsets}))
    return load_recipe(str(folder / "r.yaml"), settings)


def test_each_stage_comes_after_those_that_it_reads_and_only_what_is_needed_is_built(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS, "a": TEMPLATES})
    assert list(recipe.all).index("graphs") < list(recipe.all).index("b")
    assert (recipe.reads("b"), recipe.reads("a"), recipe.reads("graphs")) == (["graphs"], [], [])
    assert (recipe.home("graphs"), recipe.home("b")) == ("_stages/graphs", "b")
    assert list(recipe.only(["a"]).all) == ["a"] and sorted(recipe.only(["b"]).all) == ["b", "graphs"]
    with pytest.raises(WrongUse, match="recipe r has no subset 'none'; name one of b, a, graphs"):
        recipe.only(["none"])
    decisions = {"chosen", "unambiguous"}  # of a choice that is not made
    assert not decisions & {*load_recipe("bivlc").only([]).all}
    assert decisions <= {*load_recipe("bivlc", ["subsets.bivlc.source.choice=people"]).only([]).all}


def test_settings_within_settings_have_paths_and_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    engine = {"kind": "diffusers", "model": "./weights", "licence": "MIT"}
    source = {"kind": "negative-images", "negatives": "/out/prompts", "engine": engine}

    def loaded(*settings: str) -> tuple[str, str]:
        given = [f"subsets.drawn.source.engine.{setting}" for setting in settings]
        subset: Any = load(tmp_path, {}, {"drawn": {"source": source}}, *given)["drawn"]
        return subset.source.engine.model, digest(content_of(subset, 0))

    model, content = loaded()
    assert model == str(tmp_path / "weights")
    assert loaded("model=./mine", "device=gpu") == (str(tmp_path / "here/mine"), content)
    assert loaded("model=owner/weights")[0] == "owner/weights"
    assert len({content, loaded("model=owner/weights")[1], loaded("steps=20")[1]}) == 3


@pytest.mark.parametrize(
    ("stages", "setting", "problem"),
    [
        ({"b": GRAPHS, "graphs": GRAPHS}, "split=test", "b is a stage and a subset; rename one"),
        ({"graphs": {**GRAPHS, "filters": [{"kind": "blank"}]}}, "split=test", "blank judges images, and scene-graphs"),
        ({"graphs": GRAPHS}, "count=null", "set count, the number of triplets to sample"),
    ],
)
def test_stages_that_do_not_fit_are_refused(tmp_path: Path, stages: Any, setting: str, problem: str) -> None:
    with pytest.raises(WrongUse, match=problem):
        load(tmp_path, stages, {"b": TRIPLETS}, f"subsets.b.{setting}")


GEBC: dict[str, Any] = {
    "source": {"kind": "gebc", "annotations": "a.json", "media": "videos"},
    "filters": [{"kind": "motion-words"}],
    "shard_size": 7,
}


def screened(tmp_path: Path, **more: Any) -> Recipe:
    return load(tmp_path, {}, {"eq-gebc": {**GEBC, **more}})


def test_screening_is_short_for_candidates_decisions_and_what_is_kept(tmp_path: Path) -> None:
    assert screened(tmp_path, screening=False) == screened(tmp_path)
    more: dict[str, Any] = {"count": 9, "split": "train", "pool": "gpu", "language": "de"}
    whole = screened(tmp_path, screening={"overlap": 0.5, "answers": "b"}, **more)
    assert list(whole.all) == ["eq-gebc-candidates", "eq-gebc-decisions", "eq-gebc"]
    candidates, decisions, kept = whole.all.values()
    assert (candidates.known_as, candidates.count, candidates.pool) == ("eq-gebc", 9, "gpu")
    assert [part.kind for part in candidates.filters] == ["motion-words"] and not kept.filters
    assert {(stage.shard_size, stage.split, stage.language) for stage in whole.all.values()} == {(7, "train", "de")}
    asks = decisions.source.model_dump()
    assert (asks["overlap"], asks["answers"]) == (0.5, str(tmp_path / "b"))
    assert recipe_from_json(whole.model_dump_json().encode()) == whole
    # Where answers lie is not part of what is made; the name of its samples is.
    elsewhere = screened(tmp_path, screening={"overlap": 0.5, "answers": "a"}, split="train")
    assert content_of(elsewhere["eq-gebc-decisions"], 0) == content_of(decisions, 0)
    assert "known_as" in content_of(candidates, 0) and "known_as" not in content_of(kept, 0)
