"""Counts and figures that others published, reached by the commands and functions that users call."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import twinset
from twinset.cli.main import main

SHARED = Path(__file__).resolve().parents[2] / "../shared/data"
PIPELINE = Path(__file__).resolve().parents[2] / "generators/scene_graphs/en_captions_sm"
SUGARCREPE = {
    **{"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406},
    **{"swap_obj": 245, "swap_att": 666, "add_obj": 2062, "add_att": 692},
}
VALSE = {"existence": 505, "plurals": 851, "relations": 535}


def at_hand(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip(f"../shared/data/{name} is not on this machine")
    return (SHARED / name).resolve()


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    """What a command prints as JSON."""
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def recipe(folder: Path, source: dict[str, Any]) -> Path:
    """A recipe of one subset."""
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({"name": "real", "subsets": {"real": {"source": source}}}))
    return path


# The paper has 45,849 pairs of YouCook2 after its filter of faces. The others are of parts of the annotations.
@pytest.mark.parametrize(
    ("kind", "name", "settings", "planned", "excluded"),
    [
        ("youcook2", "youcook2/youcookii_annotations_trainval.json", {}, 53_550, {}),
        ("gebc", "gebc/val.json", {"skip": 0}, 5_930, {"pair-unsayable": 821}),
        ("gebc", "gebc/val.json", {"skip": 1}, 3_927, {"pair-unsayable": 742}),
        (
            *("action-genome", "action_genome/ag_scene_graphs.jsonl", {}, 2_788),
            {"pair-said-alike": 1, "pair-unsayable": 216},
        ),
    ],
)
def test_pairs_of_real_annotations(
    kind: str, name: str, settings: dict[str, int], planned: int, excluded: dict[str, int], tmp_path: Path
) -> None:
    source = {"kind": kind, "annotations": str(at_hand(name)), "media": ".", **settings}
    real = twinset.plan(recipe(tmp_path, source))["subsets"]["real"]
    assert (real["planned"], real["excluded"]) == (planned, excluded)


@pytest.mark.parametrize(
    ("name", "count"), [("sugarcrepe", 7_511), pytest.param("sugarcrepe/unrefined", 17_478, marks=pytest.mark.slow)]
)
def test_negative_captions_of_sugarcrepe(name: str, count: int, tmp_path: Path) -> None:
    source = {"kind": "replayed-negatives", "captions": str(at_hand(name))}
    real = twinset.plan(recipe(tmp_path, source))["subsets"]["real"]
    assert (real["planned"], real["excluded"]) == (count, {})


@pytest.mark.parametrize(
    ("name", "subsets", "left_out"),
    [
        ("sugarcrepe", SUGARCREPE, {}),
        ("valse", VALSE, {"foil not validated": 257}),
        ("genecis", {"change-object": 1960}, {}),
        ("gebc", {}, {"missing video": 7279}),
        pytest.param("cirr", {"global": 4181, "subset": 4181}, {}, marks=pytest.mark.slow),
    ],
)
def test_examples_of_released_benchmarks(
    name: str, subsets: dict[str, int], left_out: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = at_hand(name)
    listed = printed(capsys, "eval", "benchmarks", folder)["benchmarks"]
    (places,) = (benchmark["present"] for benchmark in listed if benchmark["name"] == name)
    (place,) = (place for place in places if Path(place["folder"]) == folder)  # unrefined SugarCrepe lies below it
    assert (place["subsets"], place["left_out"]) == (subsets, left_out)


def test_answers_of_gpt4v_to_sugarcrepe(capsys: pytest.CaptureFixture[str]) -> None:
    splits = printed(capsys, "eval", "answers", at_hand("sugarcrepe/gpt4v"), "--resamples", "0")["splits"]
    right = {
        (split, order): (splits[split][order]["as_published"]["right"], splits[split][order]["n"])
        for split in splits
        for order in ("positive-first", "negative-first")
    }
    assert right == {
        ("swap_obj", "positive-first"): (211, 246),
        ("swap_obj", "negative-first"): (198, 246),
        ("replace_att", "positive-first"): (734, 788),
        ("replace_att", "negative-first"): (740, 788),
    }


@pytest.mark.slow
def test_relations_of_captions_are_those_of_sng_parser(tmp_path: Path) -> None:
    sng_parser = pytest.importorskip("sng_parser")
    lines = at_hand("captions/cc3m_validation.tsv").read_text("utf-8").splitlines()[::50]
    (tmp_path / "captions.tsv").write_text("\n".join(lines) + "\n")
    twinset.build(recipe(tmp_path, {"kind": "scene-graphs", "captions": "captions.tsv"}), tmp_path / "out")
    relations = defaultdict[str, list[tuple[str, ...]]](list)
    for row in pq.read_table(tmp_path / "out/real/_meta/index.parquet").to_pylist():
        names = ("subject", "predicate", "object", "subject_lemma", "predicate_lemma", "object_lemma")
        relations[row["caption"]].append(tuple(row[name] for name in names))
    parser = sng_parser.Parser("spacy", model=str(PIPELINE))
    for caption, rows in relations.items():
        graph = parser.parse(" ".join(caption.split()))
        expected = []
        for relation in graph["relations"]:
            ends = [graph["entities"][relation[end]] for end in ("subject", "object")]
            lemmas = (ends[0]["lemma_head"], relation["lemma_relation"], ends[1]["lemma_head"])
            expected.append((ends[0]["head"], relation["relation"], ends[1]["head"], *lemmas))
        assert rows == expected, caption
    assert len(relations) > 100
