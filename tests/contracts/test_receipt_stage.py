"""Receipts and stage records: canonical bytes, strict reading, and a digest of all that decides the bytes.

``screening`` of a subset in a recipe: the stages that it is short for, and what is said where it is wrong.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.receipt import IndexRecord, Receipt, parse_receipt, parsed
from twinset.contracts.recipe import Recipe, content_of, load_recipe, parse_recipe, recipe_from_json
from twinset.contracts.stage import ANY_RUNTIME, Stage, _instruction_set, parse_stage, runtime_class, stage_facts

RECEIPT: dict[str, Any] = {
    "shard": 3,
    "split": "test",
    "content": "c" * 32,
    "runtime": ANY_RUNTIME,
    "slice": "5" * 32,
    "planned": 5,
    "kept": 2,
    "rejected": {"face": 2, "broken-media": 1},
    "tar_sha256": "a" * 64,
    "tar_size": 10240,
    "rows_sha256": "b" * 64,
    "rows_size": 999,
    "missing": {"é -x": None, "half": 7},
}


def stage(**changes: Any) -> Stage:
    facts = stage_facts("pair", {"seed": 0}, "", {}, [], [])
    values: dict[str, Any] = {
        "name": "eq-x",
        "facts": facts,
        "content": digest(facts),
        "plan": "0" * 32,
        "planned": 5,
        "shards": 1,
        "excluded": {"unsaid": 2},
    }
    return Stage(**{**values, **changes})


@pytest.mark.parametrize(
    ("name", "value"), [("makes", None), ("makes", []), ("settings", "x"), ("filters", {}), ("inputs", float("nan"))]
)
def test_a_stage_without_what_every_stage_says_is_refused(name: str, value: Any) -> None:
    facts = {**stage().facts, name: value}
    for changed in (
        facts,
        {key: one for key, one in facts.items() if key != name},
        {**stage().facts, "x": float("inf")},
    ):
        content = json.dumps({**json.loads(stage().to_bytes()), "facts": changed}).encode()
        with pytest.raises(WrongUse, match=r"^here: not a stage record .*run the same build again"):
            parse_stage("here", content)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "", "a/b", "a\0", "x" * 5000])
def test_a_record_of_files_elsewhere_is_none(name: str) -> None:
    given = {"content": "", "plan": "", "digest": "", "planned": 1, "kept": 1, "rows": 1}
    of: dict[str, Any] = {**given, "files": {"index.parquet": ("", 1)}}
    assert parsed(IndexRecord, json.dumps(of).encode()) is not None
    assert parsed(IndexRecord, json.dumps({**given, "files": {}}).encode()) is None
    assert parsed(IndexRecord, json.dumps({**of, "files": {**of["files"], name: ("", 1)}}).encode()) is None


def test_receipts_come_back_from_canonical_bytes() -> None:
    receipt = Receipt(**RECEIPT)
    content = receipt.to_bytes()
    assert parse_receipt(content) == receipt and content.endswith(b"}\n") and b" -x" in content
    shuffled = Receipt(**dict(reversed(RECEIPT.items())), duplicates={})
    assert shuffled.to_bytes() == content


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"\xff", b"{}", b'{"shard": 1}', b"[" * 100_000, b"NaN"],
)
def test_what_is_no_receipt_is_none(content: bytes) -> None:
    assert parse_receipt(content) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"kept": 3},
        {"planned": 6},
        {"kept": -1, "planned": 2},
        {"rejected": {"face": -2, "broken-media": 5}},
        {"tar_size": 1 << 63},
        {"content": "\ud800"},
        {"kept": "2"},
        {"rows_size": 999.0},
    ],
)
def test_counts_that_no_shard_has_are_no_receipt(changes: dict[str, Any]) -> None:
    plain = json.loads(Receipt(**RECEIPT).to_bytes())
    assert parse_receipt(canonical_json(plain) + b"\n") is not None
    assert parse_receipt(canonical_json(plain | changes) + b"\n") is None


def test_a_receipt_with_more_less_or_wrong_fields_is_none() -> None:
    raw = json.loads(Receipt(**RECEIPT).to_bytes())
    assert parse_receipt(json.dumps({**raw, "host": "x"}).encode()) is None
    assert parse_receipt(json.dumps({**raw, "kept": "many"}).encode()) is None
    assert all(
        parse_receipt(json.dumps({k: v for k, v in raw.items() if k != key}).encode()) is None for key in RECEIPT
    )


def test_nothing_changes_after_it_was_written() -> None:
    with pytest.raises(ValidationError):
        Receipt(**RECEIPT).kept = 3  # type: ignore[misc]


def test_stages_come_back_and_others_are_refused_with_a_remedy() -> None:
    assert parse_stage("stage.json", stage().to_bytes()) == stage()
    for content in (
        b"",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        json.dumps({**json.loads(stage().to_bytes()), "new": 1}).encode(),
    ):
        with pytest.raises(WrongUse, match=r"OUT/stage\.json: not a stage record of this version.*damaged.*new --out"):
            parse_stage("OUT/stage.json", content)


def test_everything_that_decides_the_bytes_is_in_the_facts() -> None:
    given: dict[str, Any] = {
        "makes": "pair",
        "settings": {"seed": 0, "shard_size": 4},
        "inputs": "a" * 64,
        "generator": {"kind": "gebc", "version": 1},
        "filters": [{"kind": "faces", "version": 1, "weights": {"hog": "f" * 64}}],
        "libraries": ("numpy", "av"),
    }
    given["makes"] = "pair"
    facts = stage_facts(**given)
    assert facts["libraries"].keys() == {"av", "numpy"} and "absent" not in facts["libraries"].values()
    assert stage_facts(**{**given, "libraries": ["av", "numpy", "av"]}) == facts
    assert stage_facts(**{**given, "libraries": ["no-such-package"]})["libraries"] == {"no-such-package": "absent"}
    others = [
        {**given, "makes": "table"},
        {**given, "settings": {"seed": 1, "shard_size": 4}},
        {**given, "inputs": "b" * 64},
        {**given, "generator": {"kind": "gebc", "version": 2}},
        {**given, "filters": []},
        {**given, "filters": [{"kind": "faces", "version": 1, "weights": {"hog": "0" * 64}}]},
        {**given, "libraries": ["numpy"]},
        {**given, "makes": "table"},
    ]
    assert len({digest(facts), *(digest(stage_facts(**other)) for other in others)}) == 8


def test_opencv_without_windows_counts_as_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code, built without X."""
    facts: dict[str, Any] = dict(makes="pairs", settings={}, inputs="", generator={}, filters=[])
    usual = stage_facts(**facts, libraries=["opencv-python"])
    assert usual["libraries"] == {"opencv-python": version("opencv-python")}

    def on_a_server(name: str) -> str:
        return version({"opencv-python": "absent", "opencv-python-headless": "opencv-python"}.get(name, name))

    monkeypatch.setattr("twinset.contracts.stage.version", on_a_server)
    assert stage_facts(**facts, libraries=["opencv-python"]) == usual


def test_runtime_classes_differ_by_what_rounds_differently() -> None:
    classes = [runtime_class(), runtime_class(threads=2), runtime_class(micro_batch=2)]
    classes += [runtime_class("NVIDIA H100"), runtime_class("NVIDIA A100")]
    assert len(set(classes)) == 5 and runtime_class() == classes[0] and ANY_RUNTIME not in classes


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu avx avx2 avx512f\n\nprocessor\t: 1\n", "avx512f"),
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu avx avx2 avx512f\n", "AuthenticAMD avx512f"),
        ("processor\t: 0\nFeatures\t: fp asimd\n", ""),
    ],
)
def test_processors_of_other_makers_are_of_another_class(tmp_path: Path, about: str, said: str) -> None:
    """MKL has kernels of their own for each."""
    (tmp_path / "cpuinfo").write_text(about)
    assert _instruction_set(str(tmp_path / "cpuinfo")) == said


FILTERS = [{"kind": "motion-words"}]
GEBC = {"source": {"kind": "gebc", "annotations": "a.json", "media": "videos"}, "filters": FILTERS, "shard_size": 7}


def recipe(tmp_path: Path, *settings: str, stages: Any = None, **more: Any) -> Recipe:
    path = tmp_path / "mine.yaml"
    raw = {"name": "mine", "subsets": {"eq-gebc": {**GEBC, **more}}, **({"stages": stages} if stages else {})}
    path.write_text(json.dumps(raw))
    return load_recipe(str(path), settings)


def test_it_is_short_for_candidates_decisions_and_what_is_kept(tmp_path: Path) -> None:
    plain = recipe(tmp_path, screening=False)
    assert plain == recipe(tmp_path) and set(plain.all) == {"eq-gebc"}
    screened = recipe(tmp_path, screening={"overlap": 0.5, "answers": "b"}, count=9, split="train", pool="gpu")
    assert list(screened.all) == ["eq-gebc-candidates", "eq-gebc-decisions", "eq-gebc"]
    assert list(screened.subsets) == ["eq-gebc"]
    candidates, decisions, kept = screened.all.values()
    assert (candidates.known_as, candidates.count, candidates.pool) == ("eq-gebc", 9, "gpu")
    assert [one.kind for one in candidates.filters] == ["motion-words"] and not kept.filters
    assert {(one.shard_size, one.split) for one in (candidates, decisions, kept)} == {(7, "train")}
    asks = decisions.source.model_dump()
    assert (asks["overlap"], asks["answers"]) == (0.5, str(tmp_path / "b"))
    assert screened.origin("eq-gebc") == candidates.source
    assert recipe(tmp_path, "subsets.eq-gebc.screening.overlap=0.5", screening=True) == recipe(
        tmp_path, screening={"overlap": 0.5}
    )
    assert recipe_from_json(screened.model_dump_json().encode()) == screened
    # Where answers lie is not part of what is made, also where nothing is said.
    elsewhere = recipe(tmp_path, screening={"overlap": 0.5, "answers": "a"}, split="train")
    assert content_of(elsewhere["eq-gebc-decisions"], 0) == content_of(decisions, 0)
    # The name of its samples decides bytes; that of a subset without one leaves digests as they were.
    assert "known_as" in content_of(candidates, 0) and "known_as" not in content_of(kept, 0)


@pytest.mark.parametrize("name", ["eq-gebc", "eq-sd"])
def test_the_shipped_recipe_offers_it(name: str) -> None:
    screened = load_recipe("eqben", [f"subsets.{name}.screening=true", "subsets.eq-ag.source.skip=2"])
    assert set(load_recipe("eqben").all) | {f"{name}-candidates", f"{name}-decisions"} == set(screened.all)
    more = load_recipe(
        "eqben", [f"subsets.{name}.screening.overlap=0.25", f"subsets.{name}.screening.answers=a.sqlite"]
    )
    asks = more[f"{name}-decisions"].source.model_dump()
    assert (asks["overlap"], asks["answers"]) == (0.25, str(Path.cwd() / "a.sqlite"))


@pytest.mark.parametrize(
    ("settings", "more", "said"),
    [
        ([], {"screening": 3}, "subsets.eq-gebc.screening: write true, false, or settings of pair-screening"),
        ([], {"screening": {"overlap": 2}}, "subsets.eq-gebc.screening.overlap: Input should be less than or equal"),
        ([], {"screening": {"overlp": 1}}, "screening.overlp: unknown key; did you mean 'overlap'?"),
        (
            [],
            {"screening": {"pairs": "/out/b"}},
            "people are asked about the pairs of this subset; remove kind and pairs",
        ),
        ([], {"screening": {"answers": "https://a.example/x"}}, "screening.answers: Value error, is a URL, and SQLite"),
        ([], {"screening": True, "stages": {"eq-gebc-decisions": GEBC}}, "adds the stages 'eq-gebc-candidates' and "),
        ([], {"screening": True, "shard_size": 0}, "subsets.eq-gebc.shard_size: Input should be greater"),
        ([], {"screening": True, "source": {"kind": "gbc"}}, "subsets.eq-gebc.source.kind: there is no source 'gbc'"),
        (["subsets.eq-gebc.screening.overlap=x"], {}, "--set subsets.eq-gebc.screening.overlap: Input should be"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_recipe(
    settings: list[str], more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse) as wrong:
        recipe(tmp_path, *settings, **more)
    assert said in str(wrong.value)


def test_only_pairs_can_be_screened_and_copies_are_not_filtered() -> None:
    stills = {"kind": "scene-graphs", "captions": "captions.json", "licence": "other: mine"}
    with pytest.raises(WrongUse, match="people are asked about pairs, and scene-graphs makes tables"):
        parse_recipe({"name": "x", "subsets": {"a": {"source": stills, "screening": True}}})
    copies = {"kind": "screened-pairs", "pairs": "/out/a", "decisions": "/out/b"}
    with pytest.raises(WrongUse, match="filter motion-words would judge what is copied"):
        parse_recipe({"name": "x", "subsets": {"a": {"source": copies, "filters": FILTERS}}})
