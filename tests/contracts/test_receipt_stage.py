"""Receipts and stage records: canonical bytes, strict reading, and a digest of all that decides the bytes."""

import json
from importlib.metadata import version
from typing import Any

import pytest

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.receipt import IndexRecord, Receipt, parse_receipt, parsed
from twinset.contracts.stage import ANY_RUNTIME, Facts, Stage, parse_stage, runtime_class, versions_of

COUNTS = {"planned": 5, "kept": 2, "rejected": {"face": 2, "broken-media": 1}}
RECEIPT: dict[str, Any] = {
    **{"shard": 3, "split": "test", "content": "c" * 32, "runtime": ANY_RUNTIME, "slice": "5" * 32, **COUNTS},
    **{"tar_sha256": "a" * 64, "tar_size": 10240, "rows_sha256": "b" * 64, "rows_size": 999},
    "missing": {"é -x": None, "half": 7},
}


FACTS = Facts(makes="pair", settings={}, inputs="", generator={}, filters=[], libraries={}).model_dump()
STAGE = Stage(name="eq-x", facts=FACTS, content=digest(FACTS), plan="", planned=5, shards=1, excluded={"unsaid": 2})


@pytest.mark.parametrize(
    ("name", "value"), [("makes", None), ("settings", {"x": float("nan")}), ("filters", {}), ("inputs", 1.5)]
)
def test_stages_come_back_and_others_are_refused_with_a_remedy(name: str, value: Any) -> None:
    assert parse_stage("here", STAGE.to_bytes()) == STAGE
    whole = json.loads(STAGE.to_bytes())
    lacking = {key: fact for key, fact in FACTS.items() if key != name}
    changed = [{**whole, "new": 1}, *({**whole, "facts": facts} for facts in ({**FACTS, name: value}, lacking))]
    for content in (b"", b"\xff", b"[" * 100_000, *(json.dumps(record).encode() for record in changed)):
        with pytest.raises(WrongUse, match=r"^here: not a stage record of this version.*damaged.*new --out"):
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
    assert Receipt(**dict(reversed(RECEIPT.items())), duplicates={}).to_bytes() == content
    for damaged in (b"", b"null", b"\xff", b"[" * 100_000, b"NaN", content[:-1]):
        assert parse_receipt(damaged) is None
    rejected = {"rejected": {"face": -2, "broken-media": 5}}
    for changes in ({"kept": 3}, {"kept": -1, "planned": 2}, rejected, {"content": "\ud800"}, {"kept": "2"}):
        assert parse_receipt(canonical_json(json.loads(content) | changes) + b"\n") is None, "no shard has it"


def test_versions_are_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCV without windows is the same code, built without X."""
    assert versions_of(["numpy", "no-such-package"]) == {"no-such-package": "absent", "numpy": version("numpy")}

    def on_a_server(name: str) -> str:
        return version({"opencv-python": "absent", "opencv-python-headless": "opencv-python"}.get(name, name))

    monkeypatch.setattr("twinset.contracts.stage.version", on_a_server)
    assert versions_of(["opencv-python"]) == {"opencv-python": version("opencv-python")}


def test_runtime_classes_differ_by_what_rounds_differently() -> None:
    classes = [runtime_class(), runtime_class(threads=2), runtime_class(micro_batch=2)]
    classes += [runtime_class("NVIDIA H100"), runtime_class("NVIDIA A100")]
    assert len(set(classes)) == 5 and runtime_class() == classes[0] and ANY_RUNTIME not in classes
